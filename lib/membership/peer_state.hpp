// What workers show of themselves besides payloads: progress, heartbeat, status.
#pragma once

#include <fast/core/deadline.hpp>

#include <cstdint>

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

/// The silence of a worker that makes it a suspect, before 50 gaps between its signs of life are
/// known.
inline constexpr Seconds suspect_after_at_first{5};

}  // namespace fast
