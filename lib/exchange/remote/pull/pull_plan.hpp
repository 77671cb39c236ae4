// Which publication of a worker on another host to copy next, decided from a copy of its header.
#pragma once

#include <optional>

#include "exchange/remote/pull/read_pace.hpp"
#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

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
  /// 0 if slots last long enough for the reads of this reader.
  Seconds slow_read() const { return pace_.slow_read(); }

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
