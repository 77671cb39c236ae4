// What workers know of each other besides payloads: progress, heartbeat, status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fast {

enum class WorkerStatus : std::uint32_t { starting, running, finished, failed };

/// A look at another worker.
struct PeerState {
  WorkerStatus status = WorkerStatus::starting;
  std::int64_t progress = 0;    ///< rounds finished
  std::uint64_t sequence = 0;   ///< publications so far
  std::uint64_t heartbeat = 0;  ///< moves every 100 ms while the process lives
  std::uint64_t activity = 0;   ///< rises when it, or a worker that it knows of, makes progress
  std::uint64_t arrived = 0;    ///< parts of its messages that have come from another host

  bool operator==(const PeerState&) const = default;
};

/// What a look at a publication has brought.
enum class Snapshot {
  none,     ///< it kept changing meanwhile, or nothing has been published
  message,  ///< vector 0 (see PayloadShape)
  weights,  ///< the weights beside it
};

/// No call is collective; only peer() and snapshot() may block, for workers of other hosts.
class Peers {
 public:
  virtual ~Peers() = default;

  virtual PeerState peer(int worker) const = 0;

  /// True when the worker has shown no sign of life for ExchangeOptions::suspect_after, counted in
  /// this worker's own heartbeats. Of workers of other hosts that are no neighbors, only peer()
  /// brings signs of life.
  virtual bool is_suspect(int worker) const = 0;

  /// This worker gets on, though it neither publishes nor completes a round: all waits go on.
  virtual void note_progress() = 0;

  /// Tells the others and wakes those that wait for this worker. For `failed`, returns true when
  /// this worker is the first of the run to fail: the one that reports.
  virtual bool announce(WorkerStatus status) = 0;

  /// Copies from another worker's newest publication its weights, if it has them beside the
  /// message, else vector 0. `room` holds the longer of the two.
  virtual Snapshot snapshot(int worker, std::span<std::byte> room) const = 0;
};

}  // namespace fast
