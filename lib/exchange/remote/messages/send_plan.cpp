#include "exchange/remote/messages/send_plan.hpp"

#include <algorithm>

namespace fast::exchange {

std::uint64_t SendPlan::newest() const {
  return edges_.board->header(edges_.rank).publication.sequence.load(std::memory_order_acquire);
}

bool SendPlan::reader_has_finished() const {
  return has_ended(status_of(edges_.board->header(reader_)));
}

/// True when the reader reads this worker in any of the rounds.
bool SendPlan::is_due(std::int64_t from, std::int64_t to) const {
  return edges_.first_read_by(reader_, from, to).has_value();
}

OwnPublication SendPlan::load(std::uint64_t sequence) const {
  const SlotBoard& board = *edges_.board;
  const std::int64_t first = board.round(edges_.rank, sequence).load(std::memory_order_acquire);
  const std::int64_t until = board.until(edges_.rank, sequence).load(std::memory_order_acquire);
  return {sequence, first, until};
}

std::optional<OwnPublication> SendPlan::if_intact(const OwnPublication& publication) const {
  const auto& [sequence, first, until] = publication;
  if (!edges_.board->still_holds(edges_.rank, sequence, first)) return std::nullopt;
  return publication;
}

std::optional<OwnPublication> SendPlan::next() const {
  const std::uint64_t newest = this->newest();
  if (newest == 0 || reader_has_finished()) return std::nullopt;
  const std::int64_t now =
      edges_.board->header(reader_).reading.consumed.load(std::memory_order_acquire);
  if (!edges_.exact()) {
    const bool is_last = status_of(edges_.board->header(edges_.rank)) == WorkerStatus::finished;
    const bool wanted = newest > sent_.sequence && (is_last || is_due(now, now + 1));
    return wanted ? if_intact(load(newest)) : std::nullopt;
  }
  const std::uint64_t oldest = newest < slot_count ? 1 : newest - slot_count + 1;
  for (auto sequence = std::max(oldest, sent_.sequence + 1); sequence <= newest; ++sequence) {
    const OwnPublication publication = load(sequence);
    if (publication.first == being_written) continue;
    if (is_due(std::max(publication.first, now), publication.until)) return if_intact(publication);
  }
  return reader_is_behind(now) ? if_intact(load(newest)) : std::nullopt;
}

/// True when the reader waits for a round that this worker has skipped: this worker suspected the
/// reader, or was suspended itself. A later publication shows that to the reader.
bool SendPlan::reader_is_behind(std::int64_t round) const {
  const bool was_sent = sent_.sequence > 0 && sent_.until >= round;
  return !was_sent && newest() > sent_.sequence && is_due(round, round) &&
         edges_.board->has_skipped(edges_.rank, round);
}

std::optional<std::int64_t> SendPlan::extension() const {
  if (sent_.sequence == 0 || reader_has_finished()) return std::nullopt;
  const auto& publication = edges_.board->header(edges_.rank).publication;
  const std::uint64_t slot = sent_.sequence % slot_count;
  const std::int64_t until = publication.until[slot].load(std::memory_order_acquire);
  const std::int64_t first = publication.rounds[slot].load(std::memory_order_acquire);
  if (first != sent_.first || until <= sent_.until) return std::nullopt;
  if (edges_.exact() && !is_due(sent_.until + 1, until)) return std::nullopt;
  return until;
}

}  // namespace fast::exchange
