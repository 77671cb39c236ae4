// Two-sided messages that never block: sends and receives whose requests the caller tests. Internal
// to the library: used by the exchange room.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <fast/mpi/communicator.hpp>
#include <optional>

namespace fast::mpi {

/// Every buffer stays untouched until done() has said so of its request. At most 2³¹ - 1 bytes
/// each.
class Messages {
 public:
  /// Collective. Messages of their own, which no other communicator's meet.
  Messages(const Communicator& communicator, const Deadline& deadline);

  MPI_Request send(int rank, int tag, const void* from, std::size_t size_bytes) const;
  /// Is done only when the receiver has begun to receive.
  MPI_Request send_matched(int rank, int tag, const void* from, std::size_t size_bytes) const;
  MPI_Request receive(int rank, int tag, void* to, std::size_t size_bytes) const;

  /// A rank whose message has come and was not asked for yet; lets MPI move what is under way.
  std::optional<int> unasked() const;

 private:
  Communicator communicator_;
};

}  // namespace fast::mpi
