#include "exchange/shared/slot_exchange.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>

#include "exchange/shared/optimistic.hpp"

namespace fast::exchange {
namespace {

Arrival::State state_of(PeerWaiter::Outcome outcome) {
  switch (outcome) {
    case PeerWaiter::Outcome::suspect:
      return Arrival::State::suspect;
    case PeerWaiter::Outcome::finished:
      return Arrival::State::finished;
    default:
      return Arrival::State::present;
  }
}

}  // namespace

SlotExchange::SlotExchange(const std::shared_ptr<Heart>& heart, EdgePlan plan,
                           const ExchangeOptions& options)
    : board_(heart->board()),
      rank_(heart->rank()),
      plan_(std::move(plan)),
      options_(options),
      waiter_(heart, options),
      last_read_(static_cast<std::size_t>(board_->workers())) {}

void SlotExchange::await_readers(const Rounds& rounds) {
  for (std::int64_t round = std::max<std::int64_t>(rounds.first, 0); round <= rounds.last;
       ++round) {
    for (const int reader : plan_(round).destinations) {
      const auto& consumed = board_->header(reader).reading.consumed;
      waiter_.wait(
          reader, [&] { return consumed.load(std::memory_order_acquire) > round; },
          "waiting for a reader", round);
    }
  }
}

MutablePayload SlotExchange::acquire() {
  const std::uint64_t next = sequence_ + 1;
  if (!acquired_) {
    if (exact()) await_readers(rounds_[next % slot_count]);
    // Before any byte of the payload changes; a full barrier, as streaming stores may follow.
    board_->round(rank_, next).exchange(being_written, std::memory_order_seq_cst);
    acquired_ = true;
  }
  return board_->payload(rank_, next);
}

void SlotExchange::publish(std::int64_t round, bool with_weights) {
  WorkerHeader& header = board_->header(rank_);
  if (acquired_) {
    acquired_ = false;
    ++sequence_;
    rounds_[sequence_ % slot_count].first = round;
    mixing::stream_fence();
    board_->has_weights(rank_, sequence_).store(with_weights ? 1 : 0, std::memory_order_relaxed);
    board_->until(rank_, sequence_).store(round, std::memory_order_relaxed);
    board_->round(rank_, sequence_).store(round, std::memory_order_release);
    header.publication.sequence.store(sequence_, std::memory_order_release);
  } else {
    require(sequence_ > 0, ErrorKind::internal, "publish: nothing was acquired");
    board_->until(rank_, sequence_).store(round, std::memory_order_release);
  }
  rounds_[sequence_ % slot_count].last = round;
  header.note_progress();
  header.ring();
}

Payload SlotExchange::published() const { return published(rank_, sequence_); }

Payload SlotExchange::published(int worker, std::uint64_t sequence) const {
  const MutablePayload slot = board_->payload(worker, sequence);
  return {slot.data, slot.scalars, slot.stride_bytes, slot.weights};
}

/// Looks for a publication that fits: exactly of `round`, or the newest that is not too old.
bool SlotExchange::find(Arrival& arrival, std::int64_t round) const {
  const auto& publication = board_->header(arrival.worker).publication;
  const std::uint64_t newest = publication.sequence.load(std::memory_order_acquire);
  const std::uint64_t depth = exact() ? slot_count : 1;
  std::int64_t latest = -1;  // round of the publications looked at
  for (std::uint64_t age = 0; age < depth && age < newest; ++age) {
    const std::uint64_t sequence = newest - age;
    const auto& mark = board_->round(arrival.worker, sequence);
    const std::int64_t first = mark.load(std::memory_order_acquire);
    const std::int64_t last =
        board_->until(arrival.worker, sequence).load(std::memory_order_acquire);
    const bool recent =
        exact() ? first <= round && round <= last
                : options_.staleness == unbounded_staleness || last >= round - options_.staleness;
    if (first == being_written || !recent) {
      if (first != being_written) latest = std::max(latest, first);
      continue;
    }
    // The oldest slot is the next to be written. Then `first` may be of the old publication and
    // `last` of the new one, or both of the new one, whose sequence is not shown yet: look again.
    const bool is_next = age + 1 == slot_count && latest >= 0 && first > latest;
    if (is_next || mark.load(std::memory_order_acquire) != first) return false;
    if (exact() && publication.sequence.load(std::memory_order_acquire) != newest) return false;
    arrival.payload = published(arrival.worker, sequence);
    arrival.round = exact() ? round : last;
    arrival.first = first;
    arrival.sequence = sequence;
    return true;
  }
  return false;
}

/// At staleness 0, without waiting for this worker, which must have seemed dead: the round's
/// publication is not there any more.
bool SlotExchange::has_gone_on(int worker, std::int64_t round) const {
  return exact() && board_->has_gone_past(worker, round);
}

bool SlotExchange::is_published(int worker, std::uint64_t sequence) const {
  const auto& publication = board_->header(worker).publication;
  return publication.sequence.load(std::memory_order_acquire) >= sequence;
}

/// Looks for the round's publication on its way into a mirror.
bool SlotExchange::find_arriving(Arrival& arrival, std::int64_t round) const {
  const auto& arriving = board_->header(arrival.worker).arriving;
  const std::uint64_t version = arriving.version.load(std::memory_order_acquire);
  const std::uint64_t sequence = arriving.sequence.load(std::memory_order_acquire);
  const std::int64_t first = arriving.first.load(std::memory_order_acquire);
  const std::int64_t until = arriving.until.load(std::memory_order_acquire);
  const bool comes = version % 2 == 0 && first <= round && round <= until &&
                     !is_published(arrival.worker, sequence);
  if (!comes || arriving.version.load(std::memory_order_acquire) != version) return false;
  arrival.payload = published(arrival.worker, sequence);
  arrival.round = round;
  arrival.first = first;
  arrival.sequence = sequence;
  arrival.arriving = version;
  return true;
}

/// A payload that was arriving has been published.
bool SlotExchange::has_come(const Arrival& arrival) const {
  if (!is_published(arrival.worker, arrival.sequence)) return false;
  const auto first = board_->round(arrival.worker, arrival.sequence).load();
  const auto until = board_->until(arrival.worker, arrival.sequence).load();
  return first == arrival.first && arrival.round <= until;
}

bool SlotExchange::await(Arrival& arrival, std::size_t bytes) {
  if (arrival.arriving == 0) return true;
  const auto& arriving = board_->header(arrival.worker).arriving;
  const std::size_t head = SlotBoard::data_offset(board_->shape());
  bool gone = false;
  const auto ready = [&] {
    const std::uint64_t here = arriving.bytes.load(std::memory_order_acquire);
    const bool same = arriving.version.load(std::memory_order_acquire) == arrival.arriving;
    if (same && bytes != whole_payload && here >= head + bytes) return true;
    if (has_come(arrival)) {
      arrival.arriving = 0;
      return true;
    }
    gone = !same;
    return gone;
  };
  const auto outcome = waiter_.wait(arrival.worker, ready, "waiting for a neighbor", arrival.round);
  return outcome == PeerWaiter::Outcome::ready && !gone;
}

std::vector<Arrival> SlotExchange::fetch(std::int64_t round, bool early) {
  std::vector<Arrival> arrivals;
  for (const int source : plan_(round).sources) {
    Arrival arrival;
    arrival.worker = source;
    bool missed = false;
    const auto ready = [&] {
      if (find(arrival, round) || (early && find_arriving(arrival, round))) return true;
      missed = has_gone_on(source, round);
      return missed;
    };
    const auto outcome = waiter_.wait(source, ready, "waiting for a neighbor", round);
    if (missed) {
      arrival.state = Arrival::State::missed;
    } else if (outcome == PeerWaiter::Outcome::ready) {
      auto& last = last_read_[static_cast<std::size_t>(source)];
      arrival.fresh = arrival.sequence > last;
      last = std::max(last, arrival.sequence);
      // What a worker published last is combined once, not for ever.
      if (!exact() && !arrival.fresh) arrival.state = look(source, round);
    } else {
      arrival.state = state_of(outcome);
    }
    arrivals.push_back(arrival);
  }
  return arrivals;
}

Arrival::State SlotExchange::look(int source, std::int64_t round) {
  const Arrival::State state = state_of(waiter_.glance(source, "looking at a neighbor", round));
  const auto& consumed = board_->header(source).reading.consumed;
  const bool took_part = exact() && consumed.load(std::memory_order_acquire) > round;
  return took_part ? Arrival::State::present : state;
}

bool SlotExchange::stands(const Arrival& arrival) const {
  return board_->still_holds(arrival.worker, arrival.sequence, arrival.first) &&
         (exact() || !is_published(arrival.worker, arrival.sequence + 2));
}

void SlotExchange::complete(std::int64_t rounds) {
  WorkerHeader& header = board_->header(rank_);
  header.reading.consumed.store(rounds, std::memory_order_release);
  header.reading.progress.store(rounds, std::memory_order_release);
  header.note_progress();
  header.ring();
}

}  // namespace fast::exchange
