#include "exchange/shared/slot_exchange.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>
#include <utility>

#include "core/contains.hpp"
#include "core/numbers.hpp"

namespace fast::exchange {
namespace {

Arrival::State arrival_state_of(PeerWaiter::Outcome outcome) {
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

SlotExchange::SlotExchange(const std::shared_ptr<Heartbeat>& heartbeat, EdgePlan plan,
                           const ExchangeOptions& options)
    : board_(heartbeat->board()),
      rank_(heartbeat->rank()),
      plan_(std::move(plan)),
      waiter_(heartbeat, options),
      staleness_(options.staleness),
      payloads_(static_cast<std::uint64_t>(options.payloads)),
      last_read_(static_cast<std::size_t>(board_->workers())),
      absent_(static_cast<std::size_t>(board_->workers())) {}

void SlotExchange::wait_for_readers(const Rounds& rounds) {
  for (std::int64_t round = std::max<std::int64_t>(rounds.first, 0); round <= rounds.last;
       ++round) {
    for (const int reader : plan_(round).destinations) {
      const auto& consumed = board_->header(reader).reading.consumed;
      waiter_.wait(
          reader, [&] { return has_consumed(consumed, round); }, "waiting for a reader", round,
          Change::reading);
    }
  }
}

MutablePayload SlotExchange::acquire() {
  const std::uint64_t next = sequence_ + 1;
  if (!acquired_) {
    if (exact() && next > payloads_) {
      wait_for_readers(rounds_[(next - payloads_) % slot_count]);
      // Of a published slot, whose payload is about to go: readers see that it does not hold.
      if (payloads_ < slot_count) begin_writing(board_->round(rank_, next - payloads_));
    }
    begin_writing(board_->round(rank_, next));
    acquired_ = true;
  }
  return board_->payload(rank_, next);
}

void SlotExchange::note_readers_ahead(std::int64_t round) {
  if (!exact() || round < 0) return;
  ahead_.clear();
  for (const int reader : plan_(round).destinations)
    if (has_completed(reader, round)) ahead_.push_back(reader);
}

void SlotExchange::publish(std::int64_t round, bool with_weights) {
  note_readers_ahead(round);
  WorkerHeader& header = board_->header(rank_);
  if (std::exchange(acquired_, false)) {
    publish_acquired(round, with_weights);
  } else {
    require(
        sequence_ > 0, ErrorKind::internal,
        "publish: worker {} has published nothing yet, round {} needs a payload; call acquire() "
        "before",
        rank_, round);
    extend_publication(header.publication, sequence_, round);
  }
  rounds_[sequence_ % slot_count].last = round;
  header.note_progress();
  header.notify();
}

void SlotExchange::publish_acquired(std::int64_t round, bool with_weights) {
  ++sequence_;
  rounds_[sequence_ % slot_count].first = round;
  mixing::stream_fence();
  board_->has_weights(rank_, sequence_).store(with_weights ? 1 : 0, std::memory_order_relaxed);
  store_publication(board_->header(rank_).publication, sequence_, round, round);
}

bool SlotExchange::is_recent(std::int64_t first, std::int64_t last, std::int64_t round) const {
  if (exact()) return first <= round && round <= last;
  return staleness_ == unbounded_staleness || last >= round - staleness_;
}

/// Finds the publication of exactly `round`, or the newest one if it is recent enough.
bool SlotExchange::find(Arrival& arrival, std::int64_t round) const {
  const auto found = find_publication(
      board_->header(arrival.worker).publication, exact(),
      [&](std::int64_t first, std::int64_t last) { return is_recent(first, last, round); });
  if (!found) return false;
  arrival.payload = read_only(board_->payload(arrival.worker, found->sequence));
  arrival.round = exact() ? round : found->last;
  arrival.first = found->first;
  arrival.sequence = found->sequence;
  return true;
}

/// Finds the round's publication on its way into a mirror.
bool SlotExchange::find_arriving(Arrival& arrival, std::int64_t round) const {
  const auto& arriving = board_->header(arrival.worker).arriving;
  const std::uint64_t version = arriving.version.load(std::memory_order_acquire);
  const std::uint64_t sequence = arriving.sequence.load(std::memory_order_acquire);
  const std::int64_t first = arriving.first.load(std::memory_order_acquire);
  const std::int64_t until = arriving.until.load(std::memory_order_acquire);
  const bool arrives = version % 2 == 0 && first <= round && round <= until &&
                       !is_published(board_->header(arrival.worker).publication, sequence);
  if (!arrives || arriving.version.load(std::memory_order_acquire) != version) return false;
  arrival.payload = read_only(board_->payload(arrival.worker, sequence));
  arrival.round = round;
  arrival.first = first;
  arrival.sequence = sequence;
  arrival.arriving = version;
  return true;
}

/// True when a payload that was arriving has been published.
bool SlotExchange::has_arrived(const Arrival& arrival) const {
  if (!is_published(board_->header(arrival.worker).publication, arrival.sequence)) return false;
  const auto first = board_->round(arrival.worker, arrival.sequence).load();
  const auto until = board_->until(arrival.worker, arrival.sequence).load();
  return first == arrival.first && arrival.round <= until;
}

bool SlotExchange::await(Arrival& arrival, std::size_t bytes) {
  if (arrival.arriving == 0) return true;
  const auto& arriving = board_->header(arrival.worker).arriving;
  const std::size_t before_data = board_->layout().data_offset();
  bool replaced = false;
  const auto ready = [&] {
    const std::uint64_t here = arriving.bytes.load(std::memory_order_acquire);
    const bool same = arriving.version.load(std::memory_order_acquire) == arrival.arriving;
    if (same && bytes != whole_payload && here >= before_data + bytes) return true;
    if (has_arrived(arrival)) {
      arrival.arriving = 0;
      return true;
    }
    replaced = !same;
    return replaced;
  };
  const auto outcome = waiter_.wait(arrival.worker, ready, "waiting for a neighbor", arrival.round);
  return outcome == PeerWaiter::Outcome::ready && !replaced;
}

bool SlotExchange::has_completed(int worker, std::int64_t round) const {
  return has_consumed(board_->header(worker).reading.consumed, round);
}

/// A source that does not read this worker may be ahead of it.
bool SlotExchange::has_left_out(int source, const RoundEdges& edges) const {
  return contains(ahead_, source) && contains(edges.destinations, source);
}

/// True if it has completed a later round for which it would have needed a publication of this
/// worker, which has published for `round` and not yet for the next one.
bool SlotExchange::goes_on_alone(int source, std::int64_t round) const {
  const std::int64_t needed = saturating_sum<std::int64_t>(round + 1, staleness_);
  return has_completed(source, needed) && contains(plan_(needed).destinations, source);
}

std::vector<Arrival> SlotExchange::fetch_all(std::int64_t round, bool early) {
  const RoundEdges edges = plan_(round);
  std::vector<Arrival> arrivals;
  arrivals.reserve(edges.sources.size());
  for (const int source : edges.sources) {
    arrivals.push_back(fetch_from(source, edges, round, early));
    absent_[static_cast<std::size_t>(source)] = !is_present(arrivals.back());
  }
  return arrivals;
}

Arrival SlotExchange::fetch_from(int source, const RoundEdges& edges, std::int64_t round,
                                 bool early) {
  Arrival arrival;
  arrival.worker = source;
  bool missed = has_left_out(source, edges);
  const auto ready = [&] {
    if (missed || find(arrival, round) || (early && find_arriving(arrival, round))) return true;
    // At staleness 0: a worker that suspects this one does not wait for it.
    missed = exact() && board_->has_skipped(source, round);
    return missed;
  };
  const auto outcome = waiter_.wait(source, ready, "waiting for a neighbor", round);
  arrival.state = missed ? Arrival::State::missed : arrival_state_of(outcome);
  if (arrival.state == Arrival::State::present) note_read(arrival, round);
  return arrival;
}

/// At staleness 0, a neighbor that was there in the latest round waits for this worker. There is
/// nothing to check, and the edges of later rounds may still change. Above 0, a publication that
/// was left out once stays so: its worker may have finished, and its status may still be on its
/// way. The last publication of a worker that has left is combined once, not again and again.
void SlotExchange::note_read(Arrival& arrival, std::int64_t round) {
  auto& last = last_read_[static_cast<std::size_t>(arrival.worker)];
  arrival.fresh = arrival.sequence > last;
  last = std::max(last, arrival.sequence);
  const bool was_absent = absent_[static_cast<std::size_t>(arrival.worker)];
  if (!exact() && !arrival.fresh) arrival.state = look(arrival.worker, round);
  const bool was_left_out = !exact() && !arrival.fresh && was_absent;
  const bool may_go_on = !exact() || was_absent;
  if (!is_present(arrival)) return;
  if (was_left_out || (may_go_on && goes_on_alone(arrival.worker, round)))
    arrival.state = Arrival::State::missed;
}

Arrival::State SlotExchange::look(int source, std::int64_t round) {
  const Arrival::State state =
      arrival_state_of(waiter_.check(source, "looking at a neighbor", round));
  const bool took_part = exact() && has_completed(source, round) && !contains(ahead_, source);
  return took_part ? Arrival::State::present : state;
}

void SlotExchange::complete(std::int64_t rounds) {
  WorkerHeader& header = board_->header(rank_);
  acknowledge(header.reading.consumed, rounds);
  header.reading.progress.store(rounds, std::memory_order_release);
  header.note_progress();
  header.notify(Change::reading);
}

bool SlotExchange::is_intact(const Arrival& arrival) const {
  const auto& publication = board_->header(arrival.worker).publication;
  return exact() ? still_holds(publication, arrival.sequence, arrival.first)
                 : still_holds_unwaited(publication, arrival.sequence, arrival.first);
}

}  // namespace fast::exchange
