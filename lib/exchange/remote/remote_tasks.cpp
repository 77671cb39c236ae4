#include "exchange/remote/remote_tasks.hpp"

#include <exception>
#include <utility>

#include "core/keep.hpp"
#include "exchange/shared/heartbeat.hpp"

namespace fast::exchange {
namespace {

constexpr Seconds longest_silence{10};  ///< afterwards the worker counts as gone
constexpr auto check_period = std::chrono::milliseconds(50);

}  // namespace

bool RemoteTasks::run(const std::shared_ptr<RemoteTask>& task, const Deadline& deadline) {
  const auto entry = std::make_shared<Entry>(Entry{task});
  const WorkerHeader& mirror = board_->header(task->worker());
  std::unique_lock lock(mutex_);
  entries_.push_back(entry);
  PeerState shown = state_of(mirror);
  Deadline silence(longest_silence);
  while (!entry->ended && !deadline.expired() && !silence.expired()) {
    ended_.wait_for(lock, check_period, [&] { return entry->ended; });
    const PeerState now = state_of(mirror);
    if (std::exchange(shown, now) != now) silence = Deadline(longest_silence);
  }
  return entry->ended && !entry->failed;
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
  if (failed) keep_for_good(entry->task);  // MPI may still write to it
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
  for (auto& entry : entries()) keep_for_good(entry->task);
}

}  // namespace fast::exchange
