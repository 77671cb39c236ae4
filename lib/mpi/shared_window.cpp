#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <utility>

#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"
#include "mpi/retired_windows.hpp"

namespace fast::mpi {
namespace {

/// By rank, whether it has released the window: 0 or 1.
using Released = std::atomic<std::uint32_t>;

constexpr auto allocating = "allocating the window";

int allocate_shared(MPI_Aint size, MPI_Comm comm, MPI_Win& window) {
  MPI_Info info = MPI_INFO_NULL;
  if (const int code = MPI_Info_create(&info); code != MPI_SUCCESS) return code;
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  void* base = nullptr;
  const int code = MPI_Win_allocate_shared(size, 1, info, comm, &base, &window);
  MPI_Info_free(&info);
  return code;
}

std::size_t available_bytes() {
  struct statvfs file_system {};
  if (statvfs("/dev/shm", &file_system) != 0) return SIZE_MAX;
  return static_cast<std::size_t>(file_system.f_bavail) * file_system.f_frsize;
}

void check_room(const Communicator& host, std::size_t bytes_per_rank, const Deadline& deadline) {
  const std::size_t available = available_bytes();
  const auto all = host.all_gather(std::to_string(available), deadline, allocating);
  std::size_t least = available;
  for (const std::string& text : all) least = std::min<std::size_t>(least, std::stoull(text));
  const std::size_t needed = bytes_per_rank * static_cast<std::size_t>(host.size());
  constexpr double mib = 1024.0 * 1024.0;
  require(needed <= least, host.rank() == 0 ? ErrorKind::resource : ErrorKind::peer_failed,
          "SharedWindow: /dev/shm has {:.1f} MiB free, {} workers on this host need {:.1f} MiB; "
          "enlarge it (mount -o remount,size=... /dev/shm), start fewer workers per host or train "
          "a smaller model",
          static_cast<double>(least) / mib, host.size(), static_cast<double>(needed) / mib);
}

}  // namespace

struct SharedWindow::Impl {
  MPI_Win window = MPI_WIN_NULL;
  std::uint64_t number = 0;
  int rank = 0;
  std::vector<int> world_ranks;
  std::vector<std::byte*> parts;
  std::size_t part_bytes = 0;    ///< whole pages
  Released* released = nullptr;  ///< behind the part of rank 0

  bool nobody_uses_it() const;
  void give_back_pages() const;
};

/// Those that have ended do not use it any more.
bool SharedWindow::Impl::nobody_uses_it() const {
  const std::vector<int> ended = ended_among(world_ranks);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const bool has_ended = std::ranges::count(ended, static_cast<int>(rank)) > 0;
    if (!has_ended && released[rank].load() == 0) return false;
  }
  return true;
}

/// The last rank that uses the window returns its memory to the system.
void SharedWindow::Impl::give_back_pages() const {
  if (!nobody_uses_it()) return;
  for (std::byte* part : parts) madvise(part, part_bytes, MADV_REMOVE);
}

SharedWindow::SharedWindow(const Communicator& host, std::size_t bytes_per_rank,
                           const Deadline& deadline)
    : impl_(std::make_unique<Impl>()) {
  impl_->part_bytes = round_up(bytes_per_rank, page_bytes);
  const std::size_t released_bytes =
      round_up(sizeof(Released) * static_cast<std::size_t>(host.size()), page_bytes);
  // One more page for alignment.
  const std::size_t part_bytes = impl_->part_bytes + released_bytes + page_bytes;
  check_room(host, part_bytes, deadline);
  impl_->window = call_together<MPI_Win>(host, deadline, allocating, "MPI_Win_allocate_shared",
                                         [host = host.impl(), part_bytes](MPI_Win& window) {
                                           return allocate_shared(static_cast<MPI_Aint>(part_bytes),
                                                                  host->comm, window);
                                         });
  check(MPI_Win_set_errhandler(impl_->window, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  for (int rank = 0; rank < host.size(); ++rank) {
    MPI_Aint size = 0;
    int unit = 0;
    void* part = nullptr;
    check(MPI_Win_shared_query(impl_->window, rank, &size, &unit, &part), "MPI_Win_shared_query");
    ask_for_huge_pages(part, part_bytes);
    const std::size_t address = round_up(reinterpret_cast<std::size_t>(part), page_bytes);
    parts_.push_back(reinterpret_cast<std::byte*>(address));
  }
  // The system gives zeroed pages; the first to write to them should be their owner.
  if (!host.impl()->skips_prefault) std::memset(part(host.rank()), 0, part_bytes - page_bytes);
  impl_->rank = host.rank();
  impl_->world_ranks = host.impl()->world_ranks;
  impl_->parts = parts_;
  impl_->released = reinterpret_cast<Released*>(part(0) + impl_->part_bytes);
  impl_->number = number_window(host, deadline);  // all have come
}

SharedWindow::~SharedWindow() {
  impl_->released[impl_->rank].store(1);
  impl_->give_back_pages();
  const std::shared_ptr<Impl> window = std::move(impl_);
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && window->parts.size() == 1) {
    MPI_Win_free(&window->window);
    return;
  }
  retire({window->number, window->world_ranks, [window] { window->give_back_pages(); },
          [window] { return MPI_Win_free(&window->window); }});
}

}  // namespace fast::mpi
