#include "exchange/remote/pull/pull_plan.hpp"

#include <algorithm>

namespace fast::exchange {
namespace {

/// The rounds of one slot, as a copy of the header shows them.
struct SlotRounds {
  SlotRounds(const WorkerHeader& seen, std::uint64_t sequence)
      : first(seen.publication.rounds[sequence % slot_count].load(std::memory_order_relaxed)),
        last(seen.publication.until[sequence % slot_count].load(std::memory_order_relaxed)) {}
  bool is_readable() const { return first != being_written; }
  bool contain(std::int64_t round) const { return first <= round && round <= last; }
  std::int64_t first, last;
};

std::uint64_t newest_sequence(const WorkerHeader& seen) {
  return seen.publication.sequence.load(std::memory_order_relaxed);
}

/// The publication for `round`; else the newest one for a later round. In the second case the
/// publisher has continued without this reader: it does not wait for a suspect.
std::optional<PullTarget> find(const WorkerHeader& seen, std::int64_t round) {
  const std::uint64_t newest = newest_sequence(seen);
  std::optional<PullTarget> later;
  for (std::uint64_t age = 0; age < slot_count && age < newest; ++age) {
    const SlotRounds slot(seen, newest - age);
    if (!slot.is_readable()) continue;
    if (slot.contain(round)) return PullTarget{newest - age, slot.first, round, std::nullopt};
    if (slot.first > round && !later) later = {newest - age, slot.first, slot.last, round};
  }
  return later;
}

}  // namespace

std::optional<PullTarget> newest_publication(const WorkerHeader& seen) {
  const std::uint64_t newest = newest_sequence(seen);
  const SlotRounds slot(seen, newest);
  if (newest == 0 || !slot.is_readable()) return std::nullopt;
  return PullTarget{newest, slot.first, slot.last, std::nullopt};
}

std::optional<PullTarget> kept_publication(const WorkerHeader& seen) {
  const std::uint64_t sequence = seen.kept.sequence.load(std::memory_order_relaxed);
  const std::int64_t first = seen.kept.first.load(std::memory_order_relaxed);
  if (sequence == 0 || first == being_written) return std::nullopt;
  return PullTarget{sequence, first, seen.kept.until.load(std::memory_order_relaxed), std::nullopt,
                    true};
}

bool is_intact(const PullTarget& target, const WorkerHeader& seen, std::uint64_t most_later) {
  if (target.kept) {
    const auto kept = kept_publication(seen);
    return kept && kept->sequence == target.sequence && kept->last == target.last;
  }
  return SlotRounds(seen, target.sequence).first == target.first &&
         newest_sequence(seen) <= target.sequence + most_later;
}

std::optional<PullTarget> PullPlan::choose(const WorkerHeader& seen, Clock::time_point at) {
  if (!edges_.exact()) return choose_newest(seen, at);
  const std::int64_t now = edges_.consumed();
  const auto needed = edges_.first_read(worker_, std::max(now, newest_round_ + 1), now + 1);
  if (!needed) return std::nullopt;
  return find(seen, *needed);
}

std::optional<PullTarget> PullPlan::choose_newest(const WorkerHeader& seen, Clock::time_point now) {
  newest_.note(newest_sequence(seen), now);
  copy_.note(seen.kept.sequence.load(std::memory_order_relaxed), now);
  const auto target = takes_copy(seen, now) ? kept_publication(seen) : newest_publication(seen);
  return target && is_new(*target) ? target : std::nullopt;
}

/// A slot whose worker has published nothing for as long as a read takes probably lasts as long
/// again. A copy that has stayed for far too long has no keeper any more.
bool PullPlan::takes_copy(const WorkerHeader& seen, Clock::time_point now) const {
  if (pace_.keeps_up() || pace_.shall_try_slot() || has_ended(status_of(seen))) return false;
  return copy_.sequence > 0 && now - newest_.since < pace_.slow_read() &&
         now - copy_.since < 4 * pace_.slow_read();
}

bool PullPlan::is_new(const PullTarget& target) const {
  return target.sequence > newest_copied_ || target.last > newest_round_;
}

bool PullPlan::has_more(const WorkerHeader& seen) const {
  if (!edges_.exact()) {
    const auto newest = newest_publication(seen);
    return newest && is_new(*newest);
  }
  const std::int64_t consumed = edges_.consumed();
  if (consumed < seen.reading.progress.load(std::memory_order_relaxed)) return true;
  for (std::uint64_t slot = 0; slot < slot_count; ++slot) {
    const SlotRounds rounds(seen, slot);
    const std::int64_t from = std::max({rounds.first, consumed, newest_round_ + 1});
    if (rounds.is_readable() && edges_.first_read(worker_, from, rounds.last)) return true;
  }
  return false;
}

/// The cache lines of a header need not be of one moment: a round that one read has missed, the
/// next one may show. Then the publisher has not skipped that round.
PullPlan::Outcome PullPlan::check(const PullTarget& target, const WorkerHeader& seen) const {
  // At staleness 0 a slot is overwritten by the third next publication; else the next but one may
  // be under way.
  if (!is_intact(target, seen, edges_.exact() ? slot_count - 1 : 1)) return Outcome::overwritten;
  if (target.skipped) {
    const auto again = find(seen, *target.skipped);
    if (!again || !again->skipped) return Outcome::not_skipped;
  }
  return Outcome::valid;
}

void PullPlan::note(const PullTarget& target, Outcome outcome, Seconds took) {
  const bool valid = outcome == Outcome::valid;
  if (!edges_.exact()) pace_.note(target.kept, valid, took);
  if (!valid) return;
  newest_copied_ = target.sequence;
  newest_round_ = target.last;
}

}  // namespace fast::exchange
