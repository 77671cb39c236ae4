// Which workers seem to have died, and how long a wait may last. All time is counted in heartbeats
// of the process that waits: they stop when the process is suspended, so that it suspects nobody
// for what it did not see itself.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/peers.hpp>

#include <cstdint>
#include <mutex>
#include <vector>

namespace fast::exchange {

inline constexpr double beats_per_second = 10;

/// So many heartbeats take at least such a time.
std::uint64_t beats_in(Seconds time);
inline Seconds seconds_of(std::uint64_t beats) {
  return Seconds(static_cast<double>(beats) / beats_per_second);
}

/// Any change of what a worker shows is a sign of life: a heartbeat, a round, a publication, a part
/// of a message that has arrived. May be used by several threads.
class FailureDetector {
 public:
  FailureDetector(int workers, Seconds suspect_after);

  /// Notes what `worker` shows when this process's own heart has beaten `now` times.
  void observe(int worker, const PeerState& seen, std::uint64_t now);

  /// True when the latest observation was more than `suspect_after` later than the latest sign of
  /// life.
  bool is_suspect(int worker) const;
  /// From the latest sign of life to the latest observation.
  Seconds silence(int worker) const;

 private:
  struct Record {
    PeerState shown;
    std::uint64_t moved = 0, observed = 0;  ///< own heartbeats
    bool known = false;
  };
  const Record& record(int worker) const { return records_[static_cast<std::size_t>(worker)]; }

  mutable std::mutex mutex_;
  std::uint64_t suspect_after_;  ///< own heartbeats
  std::vector<Record> records_;
};

/// The limit of a wait: it counts from the last time that any worker made progress, as far as this
/// one knows (PeerState::activity). So a worker that waits for others that get on ends nothing.
class Patience {
 public:
  /// `own` is what this worker itself shows, here and below.
  Patience(Seconds limit, const PeerState& own);

  /// Looks; true when nobody has made progress for longer than the limit.
  bool is_over(const PeerState& own);

  Seconds waited(const PeerState& own) const { return seconds_of(own.heartbeat - began_); }
  /// Without progress of anybody, as of the latest look.
  Seconds standstill(const PeerState& own) const { return seconds_of(own.heartbeat - moved_); }

 private:
  std::uint64_t limit_, began_, moved_, activity_;
};

}  // namespace fast::exchange
