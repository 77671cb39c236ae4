// A single request of a worker's own thread to a worker of another host.
#pragma once

namespace fast::exchange {

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

}  // namespace fast::exchange
