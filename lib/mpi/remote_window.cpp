#include "mpi/remote_window.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <fast/core/error.hpp>
#include <utility>

#include "mpi/impl.hpp"
#include "mpi/implementation.hpp"
#include "mpi/retired_windows.hpp"

namespace fast::mpi {
namespace {

constexpr const char* purpose = "opening the remote window";
constexpr const char* closing = "closing the remote window";

/// What a rank tells the others of its window.
struct Share {
  MPI_Aint base = 0;
  bool dynamic = false;
};

std::vector<Share> all_gather(const Communicator& communicator, const Share& own,
                              const Deadline& deadline) {
  const std::string_view bytes(reinterpret_cast<const char*>(&own), sizeof own);
  std::vector<Share> all;
  for (const std::string& text : communicator.all_gather(bytes, deadline, purpose))
    std::memcpy(&all.emplace_back(), text.data(), sizeof own);
  return all;
}

}  // namespace

RemoteWindow::RemoteWindow(const Communicator& communicator, std::byte* base,
                           std::size_t size_bytes, std::shared_ptr<void> keep,
                           const Deadline& deadline)
    : communicator_(communicator),
      opened_(std::make_shared<Opened>(
          Opened{duplicate(communicator, deadline, purpose), std::move(keep)})),
      bases_(static_cast<std::size_t>(communicator.size())) {
  if (implementation::reads() == implementation::Reads::messages) {
    opened_->server = std::make_unique<ReadServer>(opened_->own, base, size_bytes);
  } else {
    create(base, size_bytes, deadline);
    check(MPI_Win_set_errhandler(opened_->window, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    check(MPI_Win_lock_all(MPI_MODE_NOCHECK, opened_->window), "MPI_Win_lock_all");
  }
  number_ = number_window(opened_->own, deadline);  // all have come
}

void RemoteWindow::create(std::byte* base, std::size_t size_bytes, const Deadline& deadline) {
  const auto size = static_cast<MPI_Aint>(size_bytes);
  Share own{0, implementation::reads() == implementation::Reads::dynamic_window};
  check(MPI_Get_address(base, &own.base), "MPI_Get_address");
  const std::vector<Share> all = all_gather(opened_->own, own, deadline);
  const bool is_dynamic =
      std::any_of(all.begin(), all.end(), [](const Share& share) { return share.dynamic; });
  opened_->window = call_together<MPI_Win>(
      opened_->own, deadline, purpose, "MPI_Win_create", [=, opened = opened_](MPI_Win& window) {
        const MPI_Comm comm = opened->own.impl()->comm;
        return is_dynamic ? MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window)
                          : MPI_Win_create(base, size, 1, MPI_INFO_NULL, comm, &window);
      });
  if (!is_dynamic) return;
  check(MPI_Win_attach(opened_->window, base, size), "MPI_Win_attach");
  std::transform(all.begin(), all.end(), bases_.begin(),
                 [](const Share& share) { return share.base; });
}

int RemoteWindow::Opened::free() {
  if (std::exchange(server, nullptr)) return MPI_SUCCESS;
  MPI_Win_unlock_all(window);
  return MPI_Win_free(&window);
}

RemoteWindow::~RemoteWindow() {
  try {
    require(!communicator_.impl()->without_collectives, ErrorKind::mpi, "ranks are gone");
    // Twice: a rank that gave up in the first barrier is missing in the second, so that no rank
    // enters the blocking calls below.
    const Deadline deadline(Seconds(10));
    opened_->own.barrier(deadline, closing);
    opened_->own.barrier(deadline, closing);
    const auto opened = std::exchange(opened_, nullptr);
    call_together(opened->own, deadline, closing, "MPI_Win_free",
                  [opened] { return opened->free(); });
  } catch (...) {
    if (!opened_) return;  // MPI has it
    const std::vector<int> ranks = opened_->own.impl()->world_ranks;
    retire({number_, ranks, {}, [opened = std::move(opened_)] { return opened->free(); }});
  }
}

Request RemoteWindow::get(int rank, std::size_t offset, void* to, std::size_t size_bytes) const {
  require(size_bytes <= INT_MAX, ErrorKind::internal,
          "RemoteWindow::get: a read has {} bytes, MPI allows at most {}; read in parts",
          size_bytes, INT_MAX);
  const int count = static_cast<int>(size_bytes);
  if (opened_->server) return opened_->server->get(rank, offset, to, count);
  const MPI_Aint at = bases_[static_cast<std::size_t>(rank)] + static_cast<MPI_Aint>(offset);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Rget(to, count, MPI_BYTE, rank, at, count, MPI_BYTE, opened_->window, &request),
        "MPI_Rget");
  return {request, "MPI_Rget", rank};
}

}  // namespace fast::mpi
