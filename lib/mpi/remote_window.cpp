#include "mpi/remote_window.hpp"

#include <climits>
#include <fast/core/error.hpp>

#include "core/keep.hpp"
#include "mpi/impl.hpp"

namespace fast::mpi {

RemoteWindow::RemoteWindow(const Communicator& communicator, std::byte* base,
                           std::size_t size_bytes, std::shared_ptr<void> keep,
                           const Deadline& deadline)
    : communicator_(communicator),
      own_(duplicate(communicator, deadline, "opening the remote window")),
      keep_(std::move(keep)) {
  check(MPI_Win_create(base, static_cast<MPI_Aint>(size_bytes), 1, MPI_INFO_NULL, own_.impl()->comm,
                       &window_),
        "MPI_Win_create");
  check(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
  own_.barrier(deadline, "opening the remote window");
}

RemoteWindow::~RemoteWindow() {
  try {
    require(!communicator_.impl()->given_up, ErrorKind::mpi, "ranks are gone");
    // Twice: a rank that gave up in the first barrier is missing in the second, so that no rank
    // enters the blocking calls below.
    const Deadline deadline(Seconds(10));
    own_.barrier(deadline, "closing the remote window");
    own_.barrier(deadline, "closing the remote window");
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  } catch (const Error&) {
    keep_for_good(std::pair(std::move(keep_), own_));  // other ranks may still read
  }
}

Request RemoteWindow::get(int rank, std::size_t offset, void* to, std::size_t size_bytes) const {
  require(size_bytes <= INT_MAX, ErrorKind::internal,
          "RemoteWindow::get: a read has {} bytes, MPI allows at most {}; read in parts",
          size_bytes, INT_MAX);
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = static_cast<int>(size_bytes);
  check(MPI_Rget(to, count, MPI_BYTE, rank, static_cast<MPI_Aint>(offset), count, MPI_BYTE, window_,
                 &request),
        "MPI_Rget");
  return {request, "MPI_Rget", rank};
}

}  // namespace fast::mpi
