// What workers know of each other besides payloads: progress, heartbeat, status.
#pragma once

#include <fast/core/deadline.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace fast {

enum class WorkerStatus : std::uint32_t {
  starting,
  running,
  finished,  ///< has made all its rounds; its last publication counts to the end
  failed,    ///< the run ends
  left,      ///< before the end, as it was asked to; its publications do not count any more
};

/// Whether a worker of that status makes no further round and nobody waits for it.
inline bool has_ended(WorkerStatus status) {
  return status == WorkerStatus::finished || status == WorkerStatus::left;
}

/// What a worker shows.
struct PeerState {
  WorkerStatus status = WorkerStatus::starting;
  std::int64_t progress = 0;    ///< rounds finished
  std::uint64_t sequence = 0;   ///< publications so far
  std::uint64_t heartbeat = 0;  ///< moves every 100 ms while the process lives
  std::uint64_t activity = 0;   ///< rises when this or any worker that it knows of makes progress
  std::uint64_t arrived = 0;    ///< parts of its messages that have arrived from another host

  bool operator==(const PeerState&) const = default;
};

/// What snapshot() has copied.
enum class Snapshot {
  none,     ///< nothing: no publication yet, or it changed during each attempt
  message,  ///< vector 0 (see PayloadShape)
  weights,  ///< the weights beside the message
};

/// No call is collective. Only peer() and snapshot() may block, for workers of other hosts.
class Peers {
 public:
  virtual ~Peers() = default;

  virtual PeerState peer(int worker) const = 0;

  /// True when the worker has shown no sign of life for longer than suspect_after(), counted in
  /// this worker's own heartbeats. For a worker of another host that is no neighbor, only peer()
  /// brings signs of life.
  virtual bool is_suspect(int worker) const = 0;
  /// The longest silence of that worker that makes no suspect now: ExchangeOptions::suspect_after,
  /// or what has been measured.
  virtual Seconds suspect_after(int worker) const = 0;

  /// Reports progress between publications and rounds: no wait of any worker expires.
  virtual void note_progress() = 0;

  /// Sets this worker's status and wakes those that wait for it; one that has ended stays so. For
  /// `failed`, returns true if this worker is the first of the run to fail: the one that reports.
  virtual bool announce(WorkerStatus status) = 0;

  /// Copies the weights of another worker's newest publication: those beside the message, or else
  /// vector 0. `room` has space for the longer of the two.
  virtual Snapshot snapshot(int worker, std::span<std::byte> room) const = 0;
};

}  // namespace fast
