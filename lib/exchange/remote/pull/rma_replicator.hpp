// Follows a worker of another host by reading its memory (MPI_Rget): its header, a slot in chunks,
// its header again.
#pragma once

#include "exchange/remote/pull/pull_plan.hpp"
#include "exchange/remote/pull/remote_reads.hpp"
#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// The states and their transitions:
///
///     idle ── begin_look ──► looking ── end_look, something to copy ──► copying
///      ▲                        │                                          │
///      │                        └── end_look, nothing to copy ──► idle     │ continue_copy,
///      └──────────── end_check ── checking ◄───────────────────────────────┘ all has arrived
class RmaReplicator : public Replicator {
 public:
  RmaReplicator(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker);

  bool advance() override;
  void close() override { closing_ = true; }
  bool closed() override;
  Seconds slow_read() const override { return closing_ ? Seconds(0) : plan_.pace().slow_read(); }
  bool is_idle() const { return state_ == State::idle; }

 private:
  enum class State { idle, looking, copying, checking };

  // The transitions; true when something has moved.
  bool begin_look();
  bool end_look();
  bool continue_copy();
  bool end_check();

  void begin_copy(const PullTarget& target);
  bool mirror_status();

  RemoteEdges& edges_;
  MirrorWriter mirror_;
  HeaderRead header_;
  ChunkedRead copy_;
  PullPlan plan_;
  State state_ = State::idle;
  PullTarget target_;                             ///< of the copy
  Clock::time_point began_{};                     ///< the copy
  WorkerStatus status_ = WorkerStatus::starting;  ///< as the previous look found it
  bool closing_ = false;
};

}  // namespace fast::exchange
