// Memory of every rank that the others read with MPI_Rget. Internal to the library: used by the
// exchange room.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <fast/mpi/communicator.hpp>
#include <memory>

namespace fast::mpi {

class RemoteWindow {
 public:
  /// Collective. Exposes this rank's `size_bytes` at `base`, which must live as long as `keep`, for
  /// passive reads.
  RemoteWindow(const Communicator& communicator, std::byte* base, std::size_t size_bytes,
               std::shared_ptr<void> keep, const Deadline& deadline);
  RemoteWindow(const RemoteWindow&) = delete;
  RemoteWindow& operator=(const RemoteWindow&) = delete;
  /// Frees the window once all ranks have come; after a few seconds without them window and memory
  /// are left to the system, as others may still read.
  ~RemoteWindow();

  /// Starts reading rank `rank`'s bytes [offset, offset + size_bytes) into `to`. Never blocks.
  /// At most 2³¹ - 1 bytes.
  MPI_Request get(int rank, std::size_t offset, void* to, std::size_t size_bytes) const;

 private:
  Communicator communicator_;
  Communicator own_;  ///< of this window alone: a rank that comes late meets nothing else there
  MPI_Win window_ = MPI_WIN_NULL;
  std::shared_ptr<void> keep_;
};

}  // namespace fast::mpi
