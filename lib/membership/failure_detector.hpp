// Which workers seem to have died, and how long a wait may last. Time is counted in heartbeats of
// the process that waits. They stop while the process is suspended, so it does not suspect others
// for the time that it did not run.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/membership/peer_state.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "membership/adaptive_timeout.hpp"

namespace fast::membership {

inline constexpr double beats_per_second = 10;

/// The number of heartbeats that take at least that time; the largest number for a longer time
/// than that, so that it never passes.
std::uint64_t beats_in(Seconds time);
inline Seconds seconds_of(std::uint64_t beats) {
  return Seconds(static_cast<double>(beats) / beats_per_second);
}

/// What brings a worker's signs of life. They come later while they share a link with the parts of
/// a message. So each state has gaps and a threshold of its own.
enum class Traffic { heartbeats, message };

/// Any change of a worker's PeerState is a sign of life: a heartbeat, a round, a publication, a
/// part of a message that has arrived. Several threads may use it.
///
/// A worker is a suspect after a silence of the time given. Without one, the threshold of each
/// worker comes from its gaps so far (AdaptiveTimeout); it is suspect_after_at_first until 50 gaps
/// are known. A worker with a heartbeat of 100 ms gets 1 s. The threshold is never above 10 s.
class FailureDetector {
 public:
  /// `suspect_after`: none for a threshold from each worker's signs of life.
  FailureDetector(int workers, std::optional<Seconds> suspect_after);

  /// Notes the state of `worker` after `now` heartbeats of this process.
  void observe(int worker, const PeerState& seen, std::uint64_t now,
               Traffic traffic = Traffic::heartbeats);

  /// True when the latest observation was more than suspect_after() later than the latest sign of
  /// life.
  bool is_suspect(int worker) const;
  /// Time from the latest sign of life to the latest observation.
  Seconds silence(int worker) const;
  /// The longest silence of that worker that makes no suspect now.
  Seconds suspect_after(int worker) const;

 private:
  struct Record {
    PeerState shown;
    std::uint64_t moved = 0, observed = 0;  ///< own heartbeats
    bool known = false;
    bool in_message = false;  ///< at the latest sign of life, or since then
    AdaptiveTimeout heartbeats, message;
  };
  const Record& record(int worker) const { return records_[static_cast<std::size_t>(worker)]; }
  static void note_sign(Record& record, std::uint64_t now);
  std::uint64_t threshold(const Record& record) const;

  mutable std::mutex mutex_;
  std::optional<std::uint64_t> fixed_;  ///< own heartbeats
  std::vector<Record> records_;
};

/// The deadline of a wait. It counts from the last time that any worker made progress, as far as
/// this one knows (PeerState::activity): a wait for slow workers that make progress does not
/// expire.
class ProgressDeadline {
 public:
  /// `own` is the state of this worker itself, here and below.
  ProgressDeadline(Seconds limit, const PeerState& own);

  /// True when no worker has made progress for longer than the limit.
  bool expired(const PeerState& own);

  Seconds waited(const PeerState& own) const { return seconds_of(own.heartbeat - began_); }
  /// Time without progress of any worker, as of the latest expired().
  Seconds standstill(const PeerState& own) const { return seconds_of(own.heartbeat - moved_); }

 private:
  std::uint64_t limit_, began_, moved_, activity_;
};

}  // namespace fast::membership
