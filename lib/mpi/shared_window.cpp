#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <thread>

#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"

namespace fast::mpi {
namespace {

/// The number of ranks that are ready to free the window, and `abandoned` after one has given up
/// waiting. Both are in one word, so that all ranks free the window (a collective, blocking call)
/// or none does.
using Departures = std::atomic<std::uint32_t>;
constexpr std::uint32_t abandoned = 1U << 31;

std::size_t available_bytes() {
  struct statvfs file_system {};
  if (statvfs("/dev/shm", &file_system) != 0) return SIZE_MAX;
  return static_cast<std::size_t>(file_system.f_bavail) * file_system.f_frsize;
}

void check_room(const Communicator& host, std::size_t bytes_per_rank, const Deadline& deadline) {
  const std::size_t available = available_bytes();
  const auto all = host.all_gather(std::to_string(available), deadline, "allocating the window");
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
  Departures* departures = nullptr;
  std::uint32_t ranks = 0;
  std::shared_ptr<Communicator::Impl> host;
};

SharedWindow::SharedWindow(const Communicator& host, std::size_t bytes_per_rank,
                           const Deadline& deadline)
    : impl_(std::make_unique<Impl>()) {
  // One more page for alignment, one for the departures.
  const std::size_t part_bytes = round_up(bytes_per_rank, page_bytes) + 2 * page_bytes;
  check_room(host, part_bytes, deadline);
  MPI_Info info = MPI_INFO_NULL;
  check(MPI_Info_create(&info), "MPI_Info_create");
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  void* base = nullptr;
  const int code = MPI_Win_allocate_shared(static_cast<MPI_Aint>(part_bytes), 1, info,
                                           host.impl()->comm, &base, &impl_->window);
  MPI_Info_free(&info);
  check(code, "MPI_Win_allocate_shared");
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
  if (!host.impl()->leaves_untouched) std::memset(part(host.rank()), 0, part_bytes - page_bytes);
  impl_->host = host.impl();
  impl_->ranks = static_cast<std::uint32_t>(host.size());
  impl_->departures = reinterpret_cast<Departures*>(part(0) + round_up(bytes_per_rank, page_bytes));
  host.barrier(deadline, "allocating the window");
}

SharedWindow::~SharedWindow() {
  const bool some_will_not_come = !ended_among(impl_->host->world_ranks).empty();
  if (impl_->host->given_up || some_will_not_come) {
    impl_->departures->fetch_or(abandoned);
    return;
  }
  const Deadline deadline(Seconds(10));
  std::uint32_t seen = impl_->departures->fetch_add(1) + 1;
  while (seen != impl_->ranks) {
    if ((seen & abandoned) != 0) return;
    if (deadline.expired() && impl_->departures->compare_exchange_strong(seen, seen | abandoned))
      return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    seen = impl_->departures->load();
  }
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Win_free(&impl_->window);
}

}  // namespace fast::mpi
