#include "exchange/remote/remote_tasks.hpp"

#include <algorithm>
#include <exception>
#include <fast/core/deadline.hpp>
#include <utility>

#include "core/leak_until_exit.hpp"
#include "exchange/shared/heartbeat.hpp"

namespace fast::exchange {
namespace {

constexpr auto check_period = std::chrono::milliseconds(50);

bool is_released(RemoteTask& task) {
  try {
    return task.released();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

bool RemoteTasks::run(const std::shared_ptr<RemoteTask>& task, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (const auto earlier = left_behind(task->worker())) {
    await(*earlier, deadline, lock);
    if (!earlier->ended) return false;
  }
  const auto entry = std::make_shared<Entry>(Entry{task});
  entries_.push_back(entry);
  await(*entry, deadline, lock);
  return entry->ended && !entry->failed;
}

/// Until the entry has ended, the deadline has passed or the worker has been silent for too long.
void RemoteTasks::await(Entry& entry, const Deadline& deadline,
                        std::unique_lock<std::mutex>& lock) {
  const WorkerHeader& mirror = board_->header(entry.task->worker());
  PeerState shown = state_of(mirror);
  while (!entry.ended && !deadline.expired() && !entry.silence.expired()) {
    check_wait(lock);
    ended_.wait_for(lock, check_period, [&] { return entry.ended; });
    const PeerState now = state_of(mirror);
    if (std::exchange(shown, now) != now) entry.silence = Deadline(longest_silence);
  }
}

/// A task of this worker whose caller has given up.
std::shared_ptr<RemoteTasks::Entry> RemoteTasks::left_behind(int worker) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const auto& entry) { return entry->task->worker() == worker; });
  return found == entries_.end() ? nullptr : *found;
}

RemoteTasks::Entries RemoteTasks::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

bool RemoteTasks::is_empty() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

bool RemoteTasks::advance(const std::function<bool(int worker)>& is_followed) {
  bool moved = false;
  for (const auto& entry : entries()) moved |= advance(entry, is_followed(entry->task->worker()));
  return moved;
}

bool RemoteTasks::advance(const std::shared_ptr<Entry>& entry, bool is_followed) {
  bool failed = false;
  try {
    const bool moved = entry->task->advance(is_followed);
    if (!entry->task->ended()) return moved;
  } catch (const std::exception&) {
    failed = true;
  }
  const std::lock_guard lock(mutex_);
  entry->ended = true;
  entry->failed = failed;
  if (failed && !is_released(*entry->task)) leak_until_exit(entry->task);  // MPI may write to it
  std::erase(entries_, entry);
  ended_.notify_all();
  return true;
}

bool RemoteTasks::released() {
  bool released = true;
  for (const auto& entry : entries()) released &= entry->task->released();
  return released;
}

void RemoteTasks::leave_to_mpi() {
  for (auto& entry : entries()) leak_until_exit(entry->task);
}

}  // namespace fast::exchange
