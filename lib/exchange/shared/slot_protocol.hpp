// The slot protocol: every load and store of the words that say what a slot holds, and every fence.
// The functions are templates over the atomics and the fences, so that tests/exchange/model runs
// this code under a weak memory model. docs/explanation/slot-protocol.md has the argument for each
// memory order; a change of one here is a change there.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "exchange/shared/seqlock.hpp"

namespace fast::exchange {

inline constexpr std::uint64_t slot_count = 3;

/// In place of a slot's first round while the slot is written.
inline constexpr std::int64_t being_written = std::numeric_limits<std::int64_t>::min();

struct ProcessorFences {
  static void order_loads() { fast::order_loads(); }
  static void order_stores() { fast::order_stores(); }
};

/// A publication as a reader has found it. Its rounds are `first` to `last`.
struct FoundPublication {
  std::uint64_t sequence = 0;
  std::int64_t first = being_written, last = being_written;
};

/// Marks a slot, by the word of its first round, before any byte of it changes. The exchange is for
/// x86: streaming stores, which may follow, overtake plain stores there, and do not overtake it.
/// The fence is for other processors: there, plain stores may overtake the exchange.
template <class Fences = ProcessorFences, class Word>
void begin_writing(Word& first) {
  first.exchange(being_written, std::memory_order_seq_cst);
  Fences::order_stores();
}

/// After all bytes of the slot, and after a fence if there were streaming stores.
template <class Publication>
void store_publication(Publication& to, std::uint64_t sequence, std::int64_t first,
                       std::int64_t last) {
  to.until[sequence % slot_count].store(last, std::memory_order_relaxed);
  to.rounds[sequence % slot_count].store(first, std::memory_order_release);
  to.sequence.store(sequence, std::memory_order_release);
}

/// The newest publication is also for the rounds up to `last`.
template <class Publication>
void extend_publication(Publication& to, std::uint64_t sequence, std::int64_t last) {
  to.until[sequence % slot_count].store(last, std::memory_order_release);
}

/// `exact`: the publication for which fits(first, last); else the newest one, if it fits.
template <class Publication, class Fits>
std::optional<FoundPublication> find_publication(const Publication& from, bool exact,
                                                 const Fits& fits) {
  const std::uint64_t newest = from.sequence.load(std::memory_order_acquire);
  const std::uint64_t depth = exact ? slot_count : 1;
  std::int64_t latest = -1;  // first round of the publications looked at
  for (std::uint64_t age = 0; age < depth && age < newest; ++age) {
    const std::uint64_t sequence = newest - age;
    const auto& mark = from.rounds[sequence % slot_count];
    const std::int64_t first = mark.load(std::memory_order_acquire);
    const std::int64_t last = from.until[sequence % slot_count].load(std::memory_order_acquire);
    if (first == being_written || !fits(first, last)) {
      if (first != being_written) latest = std::max(latest, first);
      continue;
    }
    // The writer takes the oldest slot next. Then `first` may belong to the old publication and
    // `last` to the new one, or both to the new one, whose sequence is not visible yet: try again.
    const bool is_next = age + 1 == slot_count && latest >= 0 && first > latest;
    if (is_next || mark.load(std::memory_order_acquire) != first) return std::nullopt;
    if (exact && from.sequence.load(std::memory_order_acquire) != newest) return std::nullopt;
    return FoundPublication{sequence, first, last};
  }
  return std::nullopt;
}

template <class Publication>
bool is_published(const Publication& from, std::uint64_t sequence) {
  return from.sequence.load(std::memory_order_acquire) >= sequence;
}

/// The check after an optimistic read: true when all that was read of the slot belonged to the
/// publication `sequence`, whose first round is `first`. Orders the loads before it.
template <class Fences = ProcessorFences, class Publication>
bool still_holds(const Publication& from, std::uint64_t sequence, std::int64_t first) {
  Fences::order_loads();
  return first != being_written &&
         from.rounds[sequence % slot_count].load(std::memory_order_acquire) == first &&
         !is_published(from, sequence + slot_count);
}

/// The same where the writer does not wait for readers: it may have begun to write the slot after
/// the next publication.
template <class Fences = ProcessorFences, class Publication>
bool still_holds_unwaited(const Publication& from, std::uint64_t sequence, std::int64_t first) {
  return still_holds<Fences>(from, sequence, first) && !is_published(from, sequence + 2);
}

/// A reader's word: it has read the slots of all rounds below `rounds`. After these reads.
template <class Word>
void acknowledge(Word& consumed, std::int64_t rounds) {
  consumed.store(rounds, std::memory_order_release);
}

/// True when the reader has read the slot of `round`. Before that slot is written again.
template <class Word>
bool has_consumed(const Word& consumed, std::int64_t round) {
  return consumed.load(std::memory_order_acquire) > round;
}

}  // namespace fast::exchange
