// The end of a round: from neighbors' publications to new weights.
#include <algorithm>
#include <fast/core/error.hpp>

#include "worker/engine.hpp"
#include "worker/startup.hpp"
#include "worker/stopwatch.hpp"

namespace fast::worker {
namespace {

constexpr int most_passes = 3;

bool present(const Arrival& arrival) { return arrival.state == Arrival::State::present; }

bool any_arriving(const std::vector<Arrival>& arrivals) {
  return std::any_of(arrivals.begin(), arrivals.end(),
                     [](const Arrival& arrival) { return arrival.arriving != 0; });
}

}  // namespace

void Engine::combine_neighbors(const algorithm::RoundInfo& info) {
  if (!before_step()) publish_current(info);
  const auto round = plan_->at(info.round);
  std::vector<Arrival> arrivals;
  {
    const Stopwatch watch(stats_.wait_s);
    arrivals =
        mixes_early() ? link_.exchange->fetch_early(info.round) : link_.exchange->fetch(info.round);
  }
  if (!mix_as_they_arrive(arrivals, round->row)) {
    if (any_arriving(arrivals)) {
      const Stopwatch watch(stats_.wait_s);
      arrivals = link_.exchange->fetch(info.round);
    }
    if (!keeps_up(arrivals) || !mix_whole(std::move(arrivals), *round, info)) {
      rejoin();
      return;
    }
  }
  link_.exchange->complete(info.round + 1);
  const bool sent = sent_;  // what the neighbors read in this round
  if (fused()) {
    link_.exchange->publish(info.round + 1);
  } else if (before_step()) {
    publish_current({.round = info.round + 1, .learning_rate = info.learning_rate});
  }
  count_sent(sent, round->edges.destinations.size());
}

/// Notes which of a round's neighbors are there. True when that has changed since each was met
/// last.
bool Engine::note_presence(const std::vector<Arrival>& arrivals, const RoundEdges& edges) {
  bool changed = false;
  for (const Arrival& arrival : arrivals) {
    const bool there = present(arrival) || arrival.state == Arrival::State::torn;
    changed |= presence_.note(arrival.worker, !there);
  }
  if (!passes_mass()) return changed;
  for (const int reader : edges.destinations) {
    if (std::binary_search(edges.sources.begin(), edges.sources.end(), reader)) continue;
    const Arrival::State state = link_.exchange->look(reader, combinations_);
    changed |= presence_.note(reader, state != Arrival::State::present);
  }
  return changed;
}

/// The epoch that this worker is in after a round with these arrivals: the newest that it has heard
/// of, or one of its own when a neighbor has left or come back.
double Engine::epoch_after(const std::vector<Arrival>& arrivals, const RoundPlan::Round& round) {
  double newest = mixer_->epoch();
  if (!declared_.remembers_neighbors) return newest;
  if (note_presence(arrivals, round.edges)) ++newest;
  for (const Arrival& arrival : arrivals) {
    if (present(arrival)) newest = std::max(newest, mixer_->epoch_of(arrival.payload));
  }
  return newest;
}

/// Shares of readers that are absent: they stay with this worker.
double Engine::kept_shares(const RoundPlan::Round& round) const {
  double kept = 0;
  for (std::size_t k = 0; k < round.shares.size(); ++k) {
    if (presence_.is_absent(round.edges.destinations[k])) kept += round.shares[k];
  }
  return kept;
}

/// Those that are there. Messages of another epoch are left out, but for running sums, of which the
/// mixer then takes nothing.
combine::Neighborhood Engine::neighborhood(const std::vector<Arrival>& arrivals,
                                           const RoundPlan::Round& round) const {
  combine::Neighborhood near{
      link_.exchange->published(), {}, {}, {}, round.row.self + kept_shares(round)};
  const bool sums = sends_sums(declared_, options_);
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    const Arrival& arrival = arrivals[k];
    if (!present(arrival)) continue;
    if (!sums && mixer_->epoch_of(arrival.payload) != mixer_->epoch()) continue;
    near.workers.push_back(arrival.worker);
    near.payloads.push_back(arrival.payload);
    near.weights.push_back(round.row.weights[k]);
  }
  return near;
}

/// False when this worker was left behind meanwhile.
bool Engine::mix_whole(std::vector<Arrival> arrivals, const RoundPlan::Round& round,
                       const algorithm::RoundInfo& info) {
  if (options_.staleness == 0) return mix_exactly(arrivals, round, info);
  mix_optimistically(std::move(arrivals), round, info);
  return true;
}

/// False when a neighbor overwrote what was being read: it took this worker for dead.
bool Engine::mix_exactly(const std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
                         const algorithm::RoundInfo& info) {
  MutablePayload next;
  if (fused()) {
    const Stopwatch watch(stats_.wait_s);
    next = link_.exchange->acquire();
  }
  const double epoch = epoch_after(arrivals, round);
  const bool restarts = epoch != mixer_->epoch();
  if (restarts) mixer_->restart(epoch);
  if (!restarts || passes_mass()) {
    const Stopwatch watch(stats_.mix_s);
    combine::Neighborhood near = neighborhood(arrivals, round);
    if (restarts) near.self_weight = 0;  // this worker's own message is of the epoch before
    mixer_->combine(near, info, fused() ? &next : nullptr);
  }
  for (const Arrival& arrival : arrivals) {
    if (present(arrival) && !link_.exchange->stands(arrival)) return false;
  }
  count(arrivals, round.row);
  return true;
}

void Engine::mix_optimistically(std::vector<Arrival> arrivals, const RoundPlan::Round& round,
                                const algorithm::RoundInfo& info) {
  double epoch = mixer_->epoch();
  for (int pass = 1;; ++pass) {
    std::vector<int> torn;
    {
      const Stopwatch watch(stats_.mix_s);
      mixer_->gather(neighborhood(arrivals, round));
      epoch = std::max(epoch, epoch_after(arrivals, round));
    }
    for (std::size_t k = 0; k < arrivals.size(); ++k) {
      if (present(arrivals[k]) && !link_.exchange->stands(arrivals[k])) {
        torn.push_back(static_cast<int>(k));
      }
    }
    if (torn.empty()) break;
    ++stats_.rejected;
    std::vector<Arrival> again;
    if (pass < most_passes) again = link_.exchange->fetch(info.round);
    for (const int k : torn) {
      Arrival& arrival = arrivals[static_cast<std::size_t>(k)];
      if (pass < most_passes) {
        arrival = again[static_cast<std::size_t>(k)];
      } else {
        arrival.state = Arrival::State::torn;
      }
    }
  }
  const MutablePayload next = fused() ? link_.exchange->acquire() : MutablePayload{};
  if (epoch != mixer_->epoch()) {
    mixer_->restart(epoch);  // sums of the new epoch are there to be taken in the next round, too
  } else {
    const Stopwatch watch(stats_.mix_s);
    mixer_->combine_gathered(link_.exchange->published(), info, fused() ? &next : nullptr);
  }
  count(arrivals, round.row);
}

void Engine::count(const std::vector<Arrival>& arrivals, const MixingRow& row) {
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    const Arrival& arrival = arrivals[k];
    if (!present(arrival)) {
      ++stats_.skipped;
      stats_.mean_drift_weight += row.weights[k];
      if (arrival.state == Arrival::State::suspect && options_.on_suspect) {
        options_.on_suspect(arrival.worker);
      }
      continue;
    }
    ++stats_.reads;
    if (arrival.fresh) ++stats_.fresh_reads;
    const std::int64_t age = std::max<std::int64_t>(0, combinations_ - arrival.round);
    const auto last = static_cast<std::int64_t>(stats_.ages.size()) - 1;
    ++stats_.ages[static_cast<std::size_t>(std::min(age, last))];
  }
}

void Engine::count_sent(bool sent, std::size_t readers) {
  if (!sent) {
    stats_.messages_held += static_cast<std::int64_t>(readers);
    return;
  }
  stats_.messages_sent += static_cast<std::int64_t>(readers);
  stats_.bytes_sent += static_cast<double>(readers) * static_cast<double>(shape_.payload_bytes());
}

void Engine::combine_everybody(const algorithm::RoundInfo& info) {
  const Payload own = link_.exchange->published();
  const std::byte* average = average_->of_weights(own.data, stats_);
  {
    const Stopwatch watch(stats_.mix_s);
    mixer_->combine_with_pull(own, {average, nullptr, 0}, info);
  }
  publish_current({.round = info.round + 1, .learning_rate = info.learning_rate});
  link_.exchange->complete(info.round + 1);
}

void Engine::average_exactly(const algorithm::RoundInfo& info) {
  const std::byte* average = average_->of_weights(nullptr, stats_);
  {
    const Stopwatch watch(stats_.mix_s);
    mixer_->copy_weights_from(average);
  }
  publish_weights();
  link_.exchange->complete(info.round + 1);
}

}  // namespace fast::worker
