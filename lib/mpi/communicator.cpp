#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <future>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/contains.hpp"
#include "core/waits.hpp"
#include "mpi/farewell.hpp"
#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"
#include "mpi/request.hpp"
#include "mpi/retired_windows.hpp"

namespace fast::mpi {

void check(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(ErrorKind::mpi, "{}: {}", call, std::string_view(text, static_cast<std::size_t>(length)));
}

namespace {

std::vector<int> world_ranks_of(MPI_Comm comm, int size) {
  std::vector<int> own(static_cast<std::size_t>(size)), world(own.size());
  std::iota(own.begin(), own.end(), 0);
  MPI_Group members = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &members);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(members, size, own.data(), all, world.data());
  MPI_Group_free(&members);
  MPI_Group_free(&all);
  return world;
}

}  // namespace

Communicator::Impl::Impl(MPI_Comm owned) : comm(owned) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  world_ranks = world_ranks_of(comm, size);
}

Communicator::Impl::~Impl() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && !without_collectives) MPI_Comm_free(&comm);
}

void Communicator::disable_collectives() const { impl_->without_collectives = true; }

int Communicator::rank() const { return impl_->rank; }
int Communicator::size() const { return impl_->size; }

namespace {

std::atomic<bool> stuck{false};                        ///< some call of call_together()
constexpr auto moment = std::chrono::milliseconds(1);  ///< in which most of these calls end

/// Collective. `make` is MPI's function `name`: it makes a communicator of that one.
Communicator derived(const Communicator& from, const Deadline& deadline, std::string_view purpose,
                     const char* name, std::function<int(MPI_Comm, MPI_Comm*)> make) {
  from.barrier(deadline, purpose);
  return Communicator(std::make_shared<Communicator::Impl>(call_together<MPI_Comm>(
      from, deadline, purpose, name, [from = from.impl(), make = std::move(make)](MPI_Comm& made) {
        return make(from->comm, &made);
      })));
}

}  // namespace

Communicator duplicate(const Communicator& communicator, const Deadline& deadline,
                       std::string_view purpose) {
  return derived(communicator, deadline, purpose, "MPI_Comm_dup", MPI_Comm_dup);
}

Communicator Communicator::same_host(const Deadline& deadline) const {
  return derived(*this, deadline, "splitting by host", "MPI_Comm_split_type",
                 [rank = rank()](MPI_Comm all, MPI_Comm* host) {
                   return MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, host);
                 });
}

Communicator Communicator::split(int color, const Deadline& deadline) const {
  return derived(*this, deadline, "splitting a communicator", "MPI_Comm_split",
                 [color, rank = rank()](MPI_Comm all, MPI_Comm* part) {
                   return MPI_Comm_split(all, color, rank, part);
                 });
}

namespace {

/// What ranks that have left have sent before arrives within this time.
constexpr Seconds grace_after_leaving{2};

/// False after the deadline, or if a rank of the communicator has ended or leaves MPI.
bool wait_for_all(const std::function<bool()>& done, const Deadline& deadline,
                  const Communicator::Impl& ranks) {
  std::optional<Deadline> grace;
  return wait_until(done, deadline, ranks.world_ranks, [&] {
    if (!grace && !left_among(ranks.world_ranks).empty()) grace.emplace(grace_after_leaving);
    return grace && grace->expired();
  });
}

/// Places of ranks that do not take part.
struct Missing {
  std::set<int> all, causes;  ///< causes: those that did not fail because of others
  bool reported = false;      ///< one of them has failed and has reported why
};

Missing missing(const Communicator::Impl& ranks) {
  Missing found;
  for (const Farewell& one : left_among(ranks.world_ranks)) {
    found.all.insert(one.place);
    if (!one.silent) found.causes.insert(one.place);
    found.reported = found.reported || one.reported;
  }
  for (const int place : ended_among(ranks.world_ranks)) {
    if (found.all.insert(place).second) found.causes.insert(place);
  }
  found.reported = found.reported || !failed_among(ranks.world_ranks).empty();
  return found;
}

/// If ranks have ended without an error, the first of the others reports them.
[[noreturn]] void fail_without_others(std::string_view purpose, const Communicator::Impl& ranks,
                                      double waited_s) {
  const Missing gone = missing(ranks);
  if (gone.all.empty()) {
    fail(ErrorKind::deadline,
         "{}: rank {} of {} waited {:.1f} s for the other ranks; look for one that hangs or has "
         "ended",
         purpose, ranks.rank, ranks.size, waited_s);
  }
  const bool reports = living_below(ranks.rank, gone.all) == 0 && !gone.reported;
  if (!reports) leave_the_report_to_others();
  fail(
      reports ? ErrorKind::deadline : ErrorKind::peer_failed,
      "{}: rank{} {} of {} ended before this; all ranks are required: look for an early end of the "
      "program there",
      purpose, gone.causes.size() == 1 ? "" : "s", fmt::join(gone.causes, ", "), ranks.size);
}

/// Buffers of a collective call. They stay allocated if MPI may still write to them after the
/// deadline.
struct Gather {
  std::vector<std::uint64_t> left;  ///< bytes of each rank that are still to be gathered
  std::vector<int> sizes, offsets;  ///< of a part
  std::string sent, received;
};

/// Sets the bytes of each rank in the next part. MPI counts all of them together in int.
void plan_part(Gather& gather, std::size_t most_bytes) {
  const std::size_t each = std::max<std::size_t>(1, most_bytes / gather.left.size());
  for (std::size_t r = 0; r < gather.left.size(); ++r) {
    gather.sizes[r] = static_cast<int>(std::min<std::uint64_t>(gather.left[r], each));
    gather.left[r] -= static_cast<std::uint64_t>(gather.sizes[r]);
  }
  std::exclusive_scan(gather.sizes.begin(), gather.sizes.end(), gather.offsets.begin(), 0);
  gather.received.resize(static_cast<std::size_t>(gather.offsets.back() + gather.sizes.back()));
}

bool has_more(const Gather& gather) {
  return std::ranges::any_of(gather.left, [](auto left) { return left > 0; });
}

}  // namespace

std::vector<std::string> Communicator::all_gather(std::string_view bytes, const Deadline& deadline,
                                                  std::string_view purpose) const {
  const auto count = static_cast<std::size_t>(impl_->size);
  const auto own = static_cast<std::size_t>(impl_->rank);
  auto gather = std::make_unique<Gather>();
  gather->sent = std::string(bytes);
  gather->left.resize(count);
  gather->sizes.resize(count);
  gather->offsets.resize(count);
  const auto finish = [&](MPI_Request started, const char* call) {
    Request all(started, call);
    try {
      if (wait_for_all([&] { return all.test(); }, deadline, *impl_)) return;
    } catch (...) {
      [[maybe_unused]] const Gather* leaked = gather.release();
      throw;
    }
    [[maybe_unused]] const Gather* leaked = gather.release();
    fail_without_others(purpose, *impl_, deadline.elapsed_s());
  };
  MPI_Request request = MPI_REQUEST_NULL;
  gather->left[own] = bytes.size();
  check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gather->left.data(), 1, MPI_UINT64_T,
                       impl_->comm, &request),
        "MPI_Iallgather");
  finish(request, "MPI_Iallgather");
  std::vector<std::string> parts(count);
  for (std::size_t r = 0; r < count; ++r) parts[r].reserve(gather->left[r]);
  while (has_more(*gather)) {
    const char* from = gather->sent.data() + parts[own].size();
    plan_part(*gather, impl_->most_bytes_at_once);
    check(MPI_Iallgatherv(from, gather->sizes[own], MPI_BYTE, gather->received.data(),
                          gather->sizes.data(), gather->offsets.data(), MPI_BYTE, impl_->comm,
                          &request),
          "MPI_Iallgatherv");
    finish(request, "MPI_Iallgatherv");
    for (std::size_t r = 0; r < count; ++r) {
      parts[r].append(gather->received, static_cast<std::size_t>(gather->offsets[r]),
                      static_cast<std::size_t>(gather->sizes[r]));
    }
  }
  return parts;
}

void Communicator::barrier(const Deadline& deadline, std::string_view purpose) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(impl_->comm, &request), "MPI_Ibarrier");
  Request all(request, "MPI_Ibarrier");
  if (!wait_for_all([&] { return all.test(); }, deadline, *impl_))
    fail_without_others(purpose, *impl_, deadline.elapsed_s());
}

void call_together(const Communicator& ranks, const Deadline& deadline, std::string_view purpose,
                   std::string_view name, std::function<int()> call) {
  if (!launcher_reports_ends()) return check(call(), name);
  std::packaged_task<int()> task(
      [call = std::move(call)]() mutable { return std::exchange(call, nullptr)(); });
  std::future<int> code = task.get_future();
  std::thread(std::move(task)).detach();
  try {
    const auto is_known = [&] { return code.wait_for(moment) == std::future_status::ready; };
    if (!wait_for_all(is_known, deadline, *ranks.impl()))
      fail_without_others(purpose, *ranks.impl(), deadline.elapsed_s());
  } catch (...) {
    stuck = true;
    throw;
  }
  check(code.get(), name);
}

bool some_call_is_stuck() { return stuck; }

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

  /// Those that have ended do not use it any more.
  bool nobody_uses_it() const {
    const std::vector<int> ended = ended_among(world_ranks);
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const bool has_ended = contains(ended, static_cast<int>(rank));
      if (!has_ended && released[rank].load() == 0) return false;
    }
    return true;
  }

  /// The last rank that uses the window returns its memory to the system.
  void give_back_pages() const {
    if (!nobody_uses_it()) return;
    for (std::byte* part : parts) madvise(part, part_bytes, MADV_REMOVE);
  }
};

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
