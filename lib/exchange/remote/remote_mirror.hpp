// Access to workers of other hosts: a background thread copies what they publish into mirrors,
// local memory of the same layout as shared slots, which SlotExchange reads. The same thread lets
// MPI make progress for the other hosts' reads.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "exchange/remote/pull/kept_copy.hpp"
#include "exchange/remote/remote_access.hpp"
#include "exchange/remote/remote_tasks.hpp"
#include "exchange/remote/replicator_factory.hpp"

namespace fast::exchange {

class RemoteMirror : public RemoteAccess {
 public:
  RemoteMirror(RemoteEdges edges, RemoteTransports ways, RemoteLog log);
  ~RemoteMirror() override;

  bool is_remote(int worker) const override { return ways_.path(worker) != RemotePath::none; }
  bool look(int worker, const Deadline& deadline) override;
  Snapshot snapshot(int worker, std::span<std::byte> room, Piece& piece,
                    const Deadline& deadline) override;
  bool read_result(int worker, std::size_t offset, std::span<std::byte> to,
                   const Deadline& deadline) override;

 private:
  // The background thread.
  void work();
  bool is_awaited() const;
  void pause(Clock::time_point last_moved);
  void report_pace() const;
  void close();
  template <class Part>
  void attempt(const Part& part);

  RemoteEdges edges_;
  RemoteTransports ways_;
  RemoteLog log_;
  Replicators neighbors_;
  FailureNews failures_;
  ReplicatorFactory watch_;
  RemoteTasks tasks_;
  KeptCopy kept_;
  std::string last_error_;  ///< of all but the replicators
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace fast::exchange
