#include "worker/neighbor_memory.hpp"

#include <algorithm>
#include <utility>

namespace fast::worker {
namespace {
/// At first all workers are taken to be there, whoever they are.
constexpr int anyone = -1;
}  // namespace

NeighborMemory::NeighborMemory(const Context& context)
    : worker_(context),
      met_(static_cast<std::size_t>(context.setting.group.everyone().size()), anyone) {}

/// `rank` is there for that worker; none: it is absent. What has changed since the last time.
NeighborMemory::Change NeighborMemory::meet(int worker, std::optional<int> rank) {
  const auto before = std::exchange(met_[static_cast<std::size_t>(worker)], rank);
  if (before == rank || (before == anyone && rank)) return Change::none;
  if (!rank) return Change::left;
  return before ? Change::other : Change::came;
}

/// The rank in that worker's place, as Arrival::rank has it: 0 where workers are ranks.
int NeighborMemory::rank_of(int worker) const {
  const auto& members = worker_.setting.members;
  return members ? members->map().holder(worker) : 0;
}

/// Whether any neighbor of the round has left, has come back or is another rank since the last time
/// that this worker met it.
NeighborMemory::Changes NeighborMemory::note(const std::vector<Arrival>& arrivals,
                                             const RoundEdges& edges) {
  Changes changes;
  for (const Arrival& arrival : arrivals) {
    const bool there = is_present(arrival) || arrival.state == Arrival::State::torn;
    const auto rank = there ? std::optional(arrival.rank) : std::nullopt;
    const Change change = meet(arrival.worker, rank);
    changes.any |= change != Change::none;
    changes.source_came |= change == Change::came;
  }
  if (!worker_.setting.traits.topology.divides()) return changes;
  for (const int reader : edges.destinations) {
    if (std::binary_search(edges.sources.begin(), edges.sources.end(), reader)) continue;
    const Arrival::State state = worker_.exchange.look(reader, worker_.progress.combinations);
    const bool there = state == Arrival::State::present;
    const auto rank = there ? std::optional(rank_of(reader)) : std::nullopt;
    changes.any |= meet(reader, rank) != Change::none;
  }
  return changes;
}

double NeighborMemory::epoch_after(const std::vector<Arrival>& arrivals,
                                   const RoundPlan::Round& round) {
  const double own = worker_.mixer.scalars().epoch();
  if (!worker_.setting.traits.memory.remembers_neighbors) return own;
  const Changes changes = note(arrivals, round.edges);
  double heard = 0;
  bool any_present = false;
  for (const Arrival& arrival : arrivals) {
    if (!is_present(arrival)) continue;
    any_present = true;
    heard = std::max(heard, worker_.mixer.scalars().epoch_of(arrival.payload));
  }
  // What was sent in the neighbors' epoch before is lost to this worker: all begin another one.
  const bool left_out = any_present && std::exchange(left_out_rounds_, false);
  if (left_out || changes.source_came) heard += 1;
  return std::max(own + (changes.any ? 1 : 0), heard);
}

/// The shares of absent readers stay with this worker.
double NeighborMemory::kept_shares(const RoundPlan::Round& round) const {
  double kept = 0;
  for (std::size_t k = 0; k < round.shares.size(); ++k) {
    if (!met_[static_cast<std::size_t>(round.edges.destinations[k])]) kept += round.shares[k];
  }
  return kept;
}

combine::Neighborhood NeighborMemory::neighborhood(const std::vector<Arrival>& arrivals,
                                                   const RoundPlan::Round& round) const {
  combine::Neighborhood near{
      worker_.exchange.published(), {}, {}, {}, round.row.self + kept_shares(round)};
  combine::Mixer& mixer = worker_.mixer;
  const bool sums = worker_.setting.sends_sums();
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    const Arrival& arrival = arrivals[k];
    if (sums && arrival.state == Arrival::State::torn) near.owed_weight += round.row.weights[k];
    if (!is_present(arrival)) continue;
    if (!sums && mixer.scalars().epoch_of(arrival.payload) != mixer.scalars().epoch()) continue;
    near.workers.push_back(arrival.worker);
    near.payloads.push_back(arrival.payload);
    near.weights.push_back(round.row.weights[k]);
  }
  return near;
}

}  // namespace fast::worker
