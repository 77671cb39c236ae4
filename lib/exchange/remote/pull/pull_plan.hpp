// Which publication of a worker on another host to copy next, decided from a copy of its header and
// from how long reads take.
#pragma once

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <optional>

#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// Whether reads of a worker on another host keep up with what it publishes.
///
/// Above staleness 0 a publisher waits for nobody: it may write to a slot that is being read. Reads
/// that take longer than slots last then take kept copies, and try a slot again now and then.
class ReadPace {
 public:
  /// Of a finished read of a slot, or of a kept copy: it took that long, and was whole or not.
  void note(bool kept, bool whole, Seconds took) {
    if (whole && !kept) {
      slow_read_ = Seconds(0);
    } else if (whole) {
      slow_read_ = took;
      ++copies_;
      return;
    } else {
      slow_read_ = std::max(took, kept ? 2 * slow_read_ : slow_read_);
    }
    copies_ = 0;
  }

  bool keeps_up() const { return slow_read_ == Seconds(0); }
  /// 0 if reads keep up.
  Seconds slow_read() const { return slow_read_; }
  bool shall_try_slot() const { return copies_ >= copies_before_slot; }

 private:
  static constexpr int copies_before_slot = 16;

  Seconds slow_read_{0};
  int copies_ = 0;  ///< read since the last slot
};

/// A publication in a slot of another host.
struct PullTarget {
  std::uint64_t sequence = 0;
  std::int64_t first = 0;  ///< first round of its slot: changes when the slot is written again
  std::int64_t last = 0;   ///< last round that the copy will be for
  /// The round that the reader needs and the publisher has skipped; then the publication is of
  /// later rounds.
  std::optional<std::int64_t> skipped;
  bool kept = false;  ///< in the kept copy, not in a slot
};

/// The newest publication that a header shows; none before the first and while it is written.
std::optional<PullTarget> newest_publication(const WorkerHeader& seen);

/// The publication of which the worker keeps a copy, if any.
std::optional<PullTarget> kept_publication(const WorkerHeader& seen);

/// Whether a copy of `target` is whole, by a header that was read after it: its slot still has that
/// publication, and at most `most_later` publications have followed.
bool is_intact(const PullTarget& target, const WorkerHeader& seen, std::uint64_t most_later);

/// What one reader's mirror of one publisher needs.
class PullPlan {
 public:
  PullPlan(const RemoteEdges& edges, int worker) : edges_(edges), worker_(worker) {}

  /// The publication to copy now, no further ahead than the mirror has slots for; none if there is
  /// nothing to copy. `seen` was read at `now`.
  std::optional<PullTarget> choose(const WorkerHeader& seen, Clock::time_point now = Clock::now());
  /// True when a slot there is for a later round of this reader, though too far ahead to be copied
  /// now. Of rounds that the publisher has finished and the reader has not, the plan may still
  /// change.
  bool has_more(const WorkerHeader& seen) const;

  enum class Outcome { valid, overwritten, not_skipped };
  /// What a copy of `target` is worth, by a header that was read after it.
  Outcome check(const PullTarget& target, const WorkerHeader& seen) const;
  /// The outcome of a copy, which took that long, the header afterwards included.
  void note(const PullTarget& target, Outcome outcome, Seconds took);
  const ReadPace& pace() const { return pace_; }

 private:
  /// When a sequence was seen first.
  struct Seen {
    std::uint64_t sequence = 0;
    Clock::time_point since{};
    void note(std::uint64_t now_seen, Clock::time_point now) {
      if (sequence != now_seen) since = now;
      sequence = now_seen;
    }
  };
  std::optional<PullTarget> choose_newest(const WorkerHeader& seen, Clock::time_point now);
  bool takes_copy(const WorkerHeader& seen, Clock::time_point now) const;
  bool is_new(const PullTarget& target) const;

  const RemoteEdges& edges_;
  int worker_;
  std::uint64_t newest_copied_ = 0;
  std::int64_t newest_round_ = std::numeric_limits<std::int64_t>::min();
  ReadPace pace_;
  Seen newest_, copy_;
};

}  // namespace fast::exchange
