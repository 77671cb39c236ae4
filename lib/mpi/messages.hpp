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

  /// The request is done only after the receiver has begun to receive (MPI_Issend). If it is not
  /// done at the end, keep this object for good: else a later communicator, to which MPI gives the
  /// same context, may receive the message.
  Request send(int rank, int tag, const void* from, std::size_t size_bytes) const;
  /// For a message whose receiver has started the receive, or starts it after an earlier message.
  /// The request may be done before (MPI_Isend). If the receiver may have given up, keep this
  /// object for good.
  Request send_expected(int rank, int tag, const void* from, std::size_t size_bytes) const;
  Request receive(int rank, int tag, void* to, std::size_t size_bytes) const;

  struct Unsolicited {
    int rank = 0;
    int tag = 0;
  };
  /// A message that has arrived, but for which no receive has been started. Lets MPI make progress.
  std::optional<Unsolicited> unsolicited() const;

 private:
  Communicator communicator_;
};

}  // namespace fast::mpi
