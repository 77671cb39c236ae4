#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/local.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "exchange/group_impl.hpp"

namespace fast::local {
namespace {

constexpr auto look_period = std::chrono::milliseconds(50);  // at the deadline

/// What the threads of a group share: a barrier with data.
struct Rendezvous {
  explicit Rendezvous(int workers) : size(workers), parts(static_cast<std::size_t>(workers)) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> parts, complete;
  int arrived = 0;
  std::int64_t generation = 0;
  std::atomic<bool> failed{false};
  std::shared_ptr<Rendezvous> whole;  ///< of a part of a group: that group's
  bool has_failed() const { return failed || (whole && whole->has_failed()); }
  std::shared_ptr<AlignedBuffer> memory;
  std::map<int, std::shared_ptr<Rendezvous>> parts_of_group;  ///< by color
};

class LocalGroup : public GroupImpl {
 public:
  LocalGroup(std::shared_ptr<Rendezvous> rendezvous, int rank)
      : rendezvous_(std::move(rendezvous)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return rendezvous_->size; }
  std::string name() const override { return "local"; }

  std::shared_ptr<GroupImpl> subgroup(int color, const Deadline& deadline) override {
    const auto colors = all_gather(std::to_string(color), deadline, "splitting a group");
    const auto own = std::to_string(color);
    const auto place = std::count(colors.begin(), colors.begin() + rank_, own);
    {
      const std::lock_guard lock(rendezvous_->mutex);
      auto& part = rendezvous_->parts_of_group[color];
      const auto members = std::ranges::count(colors, own);
      if (!part) {
        part = std::make_shared<Rendezvous>(static_cast<int>(members));
        part->whole = rendezvous_;
      }
    }
    all_gather({}, deadline, "splitting a group");
    auto part = rendezvous_->parts_of_group.at(color);
    all_gather({}, deadline, "splitting a group");
    const std::lock_guard lock(rendezvous_->mutex);
    rendezvous_->parts_of_group.clear();
    return std::make_shared<LocalGroup>(std::move(part), static_cast<int>(place));
  }

  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    Rendezvous& m = *rendezvous_;
    std::unique_lock lock(m.mutex);
    m.parts[static_cast<std::size_t>(rank_)] = bytes;
    const std::int64_t mine = m.generation;
    if (++m.arrived == m.size) {
      m.complete = m.parts;
      m.arrived = 0;
      ++m.generation;
      m.changed.notify_all();
      return m.complete;
    }
    const auto met = [&] { return m.generation != mine || m.has_failed(); };
    while (!m.changed.wait_for(lock, look_period, met)) {
      check_wait(lock);
      require(!deadline.expired(), ErrorKind::deadline,
              "{}: worker {} of {} waited {:.1f} s for the other workers; look for one that hangs "
              "or has ended",
              purpose, rank_, m.size, deadline.elapsed_s());
    }
    require(m.generation != mine, ErrorKind::peer_failed, "{}: another worker failed", purpose);
    return m.complete;
  }

  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) override {
    const std::size_t part_bytes = round_up(bytes_per_worker, page_bytes);
    if (rank_ == 0) {
      rendezvous_->memory = std::make_shared<AlignedBuffer>(
          part_bytes * static_cast<std::size_t>(size()) + page_bytes);
    }
    all_gather({}, deadline, "allocating");
    Region region;
    region.owner = rendezvous_->memory;
    const auto base = reinterpret_cast<std::size_t>(rendezvous_->memory->data());
    for (std::size_t r = 0; r < static_cast<std::size_t>(size()); ++r) {
      region.parts.push_back(
          reinterpret_cast<std::byte*>(round_up(base, page_bytes) + r * part_bytes));
    }
    region.part_bytes = part_bytes;
    all_gather({}, deadline, "allocating");
    return region;
  }

 private:
  std::shared_ptr<Rendezvous> rendezvous_;
  int rank_;
};

/// Waits of all workers end.
void note_failure(Rendezvous& rendezvous) {
  const std::lock_guard lock(rendezvous.mutex);
  rendezvous.failed = true;
  rendezvous.changed.notify_all();
}

std::vector<Group> groups_of(const std::shared_ptr<Rendezvous>& rendezvous) {
  std::vector<Group> groups;
  for (int rank = 0; rank < rendezvous->size; ++rank) {
    groups.push_back(GroupImpl::group(std::make_shared<LocalGroup>(rendezvous, rank)));
  }
  return groups;
}

/// The first error that does not follow from another worker's error.
void rethrow_first(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr follower;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const Error& known) {
      if (known.kind() != ErrorKind::peer_failed) throw;
      follower = error;
    }
  }
  if (follower) std::rethrow_exception(follower);
}

}  // namespace

std::vector<Group> make_groups(int workers) {
  require(workers >= 1, ErrorKind::argument,
          "local: {} workers were requested, at least 1 is required", workers);
  return groups_of(std::make_shared<Rendezvous>(workers));
}

void run(int workers, const std::function<void(Group)>& fn) {
  require(workers >= 1, ErrorKind::argument,
          "local: {} workers were requested, at least 1 is required", workers);
  const auto rendezvous = std::make_shared<Rendezvous>(workers);
  const std::vector<Group> groups = groups_of(rendezvous);
  std::vector<std::exception_ptr> errors(groups.size());
  std::vector<std::thread> threads;
  threads.reserve(groups.size());
  std::string why_fewer;
  const auto work = [&](std::size_t r) {
    try {
      fn(groups[r]);
    } catch (...) {
      errors[r] = std::current_exception();
      note_failure(*rendezvous);
    }
  };
  try {
    for (std::size_t r = 0; r < groups.size(); ++r) threads.emplace_back(work, r);
  } catch (const std::exception& error) {
    why_fewer = error.what();
    note_failure(*rendezvous);
  }
  for (std::thread& thread : threads) thread.join();
  require(threads.size() == groups.size(), ErrorKind::resource,
          "local: the thread of worker {} of {} cannot be made: {}; take fewer workers",
          threads.size(), workers, why_fewer);
  rethrow_first(errors);
}

}  // namespace fast::local
