#include <condition_variable>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/local.hpp>
#include <mutex>
#include <thread>

namespace fast::local {
namespace {

constexpr auto look_period = std::chrono::milliseconds(50);  // at the deadline

/// What the threads of a group share: a meeting point.
struct Meeting {
  explicit Meeting(int workers) : size(workers), parts(static_cast<std::size_t>(workers)) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> parts, complete;
  int arrived = 0;
  std::int64_t meetings = 0;
  bool failed = false;
  std::shared_ptr<AlignedBuffer> memory;
};

class LocalGroup : public GroupImpl {
 public:
  LocalGroup(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return meeting_->size; }
  std::string name() const override { return "local"; }

  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    Meeting& m = *meeting_;
    std::unique_lock lock(m.mutex);
    m.parts[static_cast<std::size_t>(rank_)] = bytes;
    const std::int64_t mine = m.meetings;
    if (++m.arrived == m.size) {
      m.complete = m.parts;
      m.arrived = 0;
      ++m.meetings;
      m.changed.notify_all();
      return m.complete;
    }
    const auto met = [&] { return m.meetings != mine || m.failed; };
    while (!m.changed.wait_for(lock, look_period, met)) {
      require(!deadline.expired(), ErrorKind::deadline,
              "{}: worker {} of {} waited {:.1f} s for the others; look for one that hangs or has "
              "ended",
              purpose, rank_, m.size, deadline.elapsed_s());
    }
    require(m.meetings != mine, ErrorKind::peer_failed, "{}: another worker failed", purpose);
    return m.complete;
  }

  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) override {
    const std::size_t part_bytes = round_up(bytes_per_worker, page_bytes);
    if (rank_ == 0) {
      meeting_->memory = std::make_shared<AlignedBuffer>(
          part_bytes * static_cast<std::size_t>(size()) + page_bytes);
    }
    all_gather({}, deadline, "allocating");
    Region region;
    region.owner = meeting_->memory;
    const auto base = reinterpret_cast<std::size_t>(meeting_->memory->data());
    for (std::size_t r = 0; r < static_cast<std::size_t>(size()); ++r) {
      region.parts.push_back(
          reinterpret_cast<std::byte*>(round_up(base, page_bytes) + r * part_bytes));
    }
    region.part_bytes = part_bytes;
    all_gather({}, deadline, "allocating");
    return region;
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

std::vector<Group> groups_of(const std::shared_ptr<Meeting>& meeting) {
  std::vector<Group> groups;
  for (int rank = 0; rank < meeting->size; ++rank) {
    groups.emplace_back(std::make_shared<LocalGroup>(meeting, rank));
  }
  return groups;
}

/// The error worth telling: the first that does not merely follow from another's.
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
  require(workers >= 1, ErrorKind::argument, "local: {} workers; at least 1 is needed", workers);
  return groups_of(std::make_shared<Meeting>(workers));
}

void run(int workers, const std::function<void(Group)>& fn) {
  require(workers >= 1, ErrorKind::argument, "local: {} workers; at least 1 is needed", workers);
  const auto meeting = std::make_shared<Meeting>(workers);
  const std::vector<Group> groups = groups_of(meeting);
  std::vector<std::exception_ptr> errors(groups.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < groups.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        fn(groups[r]);
      } catch (...) {
        errors[r] = std::current_exception();
        const std::lock_guard lock(meeting->mutex);
        meeting->failed = true;
        meeting->changed.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_first(errors);
}

}  // namespace fast::local
