// Workers of other hosts, as if they were here: a thread keeps local memory of the same layout up
// to date with what neighbors publish, so that SlotExchange reads a mirror as it reads a shared
// slot. The same thread lets MPI serve the others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exchange/remote/puller.hpp"
#include "exchange/remote/remote_access.hpp"
#include "exchange/remote/remote_paths.hpp"
#include "exchange/remote/replicators.hpp"
#include "mpi/messages.hpp"

namespace fast::exchange {

class RemoteMirror : public RemoteAccess {
 public:
  /// What a worker needs to reach others: `paths` says how, by worker; `window` exposes every
  /// worker's own part of the board.
  struct Ways {
    std::vector<RemotePath> paths;
    std::unique_ptr<mpi::RemoteWindow> window;
    std::unique_ptr<mpi::Messages> messages;
  };
  RemoteMirror(RemoteEdges edges, Ways ways, LogSink log);
  ~RemoteMirror() override;
  RemoteMirror(const RemoteMirror&) = delete;
  RemoteMirror& operator=(const RemoteMirror&) = delete;

  bool is_remote(int worker) const override { return path(worker) != RemotePath::none; }
  bool look(int worker, const Deadline& deadline) override;
  Snapshot snapshot(int worker, std::span<std::byte> room, const Deadline& deadline) override;

 private:
  struct Task;

  RemotePath path(int worker) const { return ways_.paths[static_cast<std::size_t>(worker)]; }
  void run();
  bool is_awaited();
  void rest(Clock::time_point last_moved);
  void close();
  void watch_neighbors();
  void meet_strangers();
  template <class Part>
  void attempt(const Part& part);
  void follow(int worker);
  bool run_tasks();
  bool run(const std::shared_ptr<Task>& task);
  bool await(const std::shared_ptr<Task>& task, const Deadline& deadline);

  RemoteEdges edges_;
  Ways ways_;
  LogSink log_;
  std::int64_t watched_ = -1;
  Replicators neighbors_;
  std::string trouble_;  ///< what has failed last, beside edges
  std::mutex mutex_;     ///< guards tasks_
  std::condition_variable task_done_;
  std::vector<std::shared_ptr<Task>> tasks_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace fast::exchange
