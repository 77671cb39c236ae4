// Two-sided messages that never block: sends and receives whose requests the caller tests.
#pragma once

#include <cstddef>
#include <fast/mpi/communicator.hpp>
#include <optional>

#include "mpi/request.hpp"

namespace fast::mpi {

/// A buffer belongs to MPI until its request is done. A message has at most 2³¹ - 1 bytes.
class Messages {
 public:
  /// Collective. No message of another communicator is received here.
  Messages(const Communicator& communicator, const Deadline& deadline);

  Request send(int rank, int tag, const void* from, std::size_t size_bytes) const;
  /// Is done only after the receiver has begun to receive (MPI_Issend).
  Request send_matched(int rank, int tag, const void* from, std::size_t size_bytes) const;
  Request receive(int rank, int tag, void* to, std::size_t size_bytes) const;

  /// A rank whose message has arrived, but for which no receive has been started. Lets MPI make
  /// progress.
  std::optional<int> unsolicited() const;

 private:
  Communicator communicator_;
};

}  // namespace fast::mpi
