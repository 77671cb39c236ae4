// Memory of every rank that the other ranks read.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <fast/mpi/communicator.hpp>
#include <memory>
#include <vector>

#include "mpi/read_server.hpp"
#include "mpi/request.hpp"

namespace fast::mpi {

/// What an implementation of MPI does well decides how (implementation::reads): an MPI window, a
/// dynamic one, or messages that a thread of the rank that is read answers.
class RemoteWindow {
 public:
  /// Collective. Exposes this rank's `size_bytes` at `base` for passive reads. `keep` owns that
  /// memory.
  RemoteWindow(const Communicator& communicator, std::byte* base, std::size_t size_bytes,
               std::shared_ptr<void> keep, const Deadline& deadline);
  RemoteWindow(const RemoteWindow&) = delete;
  RemoteWindow& operator=(const RemoteWindow&) = delete;
  /// Waits a few seconds for all ranks, then frees the window. If a rank is missing, window and
  /// memory stay, because other ranks may still read: until the ranks meet again (free_retired), or
  /// until the process ends.
  ~RemoteWindow();

  /// Starts reading rank `rank`'s bytes [offset, offset + size_bytes) into `to`. Never blocks.
  /// At most 2³¹ - 1 bytes.
  Request get(int rank, std::size_t offset, void* to, std::size_t size_bytes) const;

 private:
  /// What may outlive this object.
  struct Opened {
    Communicator own;  ///< of this window alone: no other collective call mixes with its barriers
    std::shared_ptr<void> keep;
    MPI_Win window = MPI_WIN_NULL;
    std::unique_ptr<ReadServer> server{};  ///< in place of the window, where messages are better

    int free();
  };
  void create(std::byte* base, std::size_t size_bytes, const Deadline& deadline);

  Communicator communicator_;
  std::shared_ptr<Opened> opened_;
  std::vector<MPI_Aint> bases_;  ///< by rank; 0 unless the window is dynamic
  std::uint64_t number_ = 0;
};

}  // namespace fast::mpi
