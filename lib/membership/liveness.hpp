// Which workers and ranks show signs of life. Time is counted in heartbeats of the process that
// waits, or while it runs: it does not suspect others for the time that it was suspended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <fast/core/deadline.hpp>
#include <mutex>
#include <optional>
#include <vector>

#include "membership/peer_state.hpp"
#include "membership/records.hpp"

namespace fast::membership {

/// How long a worker that lives is silent between two signs of life, and how long a silence must be
/// to make it a suspect. The unit is the observer's heartbeat, a tenth of a second.
///
/// The latest `capacity` gaps between signs of life. The threshold is `factor` times the gap that
/// 99 % of them do not exceed, within [floor, ceiling].
///
/// A quantile, because the long gaps decide: most gaps are one heartbeat, also on a link where each
/// tenth gap is ten. Their median is then 1 and their median absolute deviation is 0, and a normal
/// distribution (phi accrual) calls a gap that comes once in 100 impossible.
///
/// The 1 % (one gap at least) that may be longer are pauses: they do not move the threshold. A
/// worker that pauses more often gets a higher one, until `capacity` further gaps have passed.
class AdaptiveTimeout {
 public:
  static constexpr std::size_t capacity = 300;  ///< half a minute at least
  static constexpr std::size_t enough = 50;     ///< gaps that are required for a threshold
  static constexpr std::uint64_t factor = 4;
  static constexpr std::uint64_t floor = 10;  ///< 1 s
  /// 10 s. A link whose usual gap is longer than a quarter of it gets less than `factor` times that
  /// gap; one whose usual gap is longer than 10 s makes suspects again and again. Such a link needs
  /// a threshold in seconds.
  static constexpr std::uint64_t ceiling = 100;

  /// `gap`: from one sign of life to the next, at least 1.
  void add(std::uint64_t gap);

  /// False as long as too few gaps are known.
  bool has_enough() const { return size_ >= enough; }
  /// The longest silence of a worker that is no suspect. Only if has_enough().
  std::uint64_t threshold() const;

 private:
  /// Longer gaps count as this one.
  static constexpr std::uint64_t longest = ceiling / factor;
  std::uint64_t usual_gap() const;

  std::array<std::uint8_t, capacity> gaps_{};
  std::array<std::uint16_t, longest + 1> counts_{};  ///< by gap
  std::size_t size_ = 0, next_ = 0;
};

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

/// One table of the ranks' beats, for all protocols of a rank. How long a silence is too long, each
/// protocol says itself. Time passes only while this process runs.
class Liveness {
 public:
  /// `beat`: the place of a word that grows while its rank lives.
  Liveness(RecordBoard board, std::size_t beat);

  /// `elapsed_s`: since the last look, as far as this process was running. `died`: ranks that the
  /// launcher has reported.
  void look(double elapsed_s, const std::vector<int>& died = {});
  /// The same without time passing and without news of the launcher.
  void look_again();

  // As the last look has found.
  /// The beat has stood still for longer than that. This rank itself is never silent.
  bool is_silent(int rank, double after_s) const;
  /// The launcher has reported its death.
  bool has_died(int rank) const;
  /// Since the first look.
  double time_s() const { return time_s_; }

 private:
  struct Sign {
    std::uint64_t beat = 0;
    double at_s = 0;
  };

  RecordBoard board_;
  std::size_t beat_;
  double time_s_ = 0;
  std::vector<Sign> signs_;  ///< by rank
  std::vector<int> died_;
};

}  // namespace fast::membership
