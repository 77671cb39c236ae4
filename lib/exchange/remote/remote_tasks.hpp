// Requests of a worker's own thread to workers of other hosts: the thread waits, and the background
// thread of remote edges runs them.
#pragma once

#include <condition_variable>
#include <fast/core/deadline.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// A single request to a worker of another host.
///
/// Used by the background thread of remote edges; its result is read when it has ended.
class RemoteTask {
 public:
  explicit RemoteTask(int worker) : worker_(worker) {}
  virtual ~RemoteTask() = default;
  int worker() const { return worker_; }

  /// Takes the next step without blocking. True when something has moved. `is_followed`: a
  /// replicator keeps the worker's status in its mirror, and the task does not.
  virtual bool advance(bool is_followed) = 0;
  virtual bool ended() const = 0;
  /// True when MPI does not use the task's memory any more.
  virtual bool released() = 0;

 private:
  int worker_;
};

/// The requests that are waited for.
class RemoteTasks {
 public:
  explicit RemoteTasks(std::shared_ptr<const SlotBoard> board) : board_(std::move(board)) {}

  /// Afterwards a worker without a sign of life counts as gone.
  static constexpr Seconds longest_silence{10};

  /// Any thread. Blocks until the task has ended. False when it failed, the deadline passed, or the
  /// worker showed no sign of life for `longest_silence`. A worker that still owes the answer to an
  /// earlier task is not asked again: the silence then counts from that task on.
  bool run(const std::shared_ptr<RemoteTask>& task, const Deadline& deadline);

  // The background thread.
  bool is_empty() const;
  /// Advances all tasks: a worker that does not answer delays only its own. True when something has
  /// moved. `is_followed` says whether a worker has a replicator.
  bool advance(const std::function<bool(int worker)>& is_followed);
  /// True when MPI uses the memory of no task any more.
  bool released();
  /// Keeps the memory of all tasks until the process ends.
  void leave_to_mpi();

 private:
  struct Entry {
    std::shared_ptr<RemoteTask> task;
    Deadline silence{longest_silence};
    bool ended = false, failed = false;
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;
  Entries entries() const;
  std::shared_ptr<Entry> left_behind(int worker) const;
  void await(Entry& entry, const Deadline& deadline, std::unique_lock<std::mutex>& lock);
  bool advance(const std::shared_ptr<Entry>& entry, bool is_followed);

  std::shared_ptr<const SlotBoard> board_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  Entries entries_;  ///< under way
};

}  // namespace fast::exchange
