#include "worker/neighbor_memory.hpp"

#include <algorithm>

#include "exchange/group_impl.hpp"
#include "exchange/seats/seat_keeper.hpp"

namespace fast::worker {

NeighborMemory::NeighborMemory(const Context& context)
    : worker_(context), presence_(context.setting.group.everyone().size()) {}

/// The rank in that worker's place, as Arrival::rank has it: 0 where workers are ranks.
int NeighborMemory::rank_of(int worker) const {
  const auto seats = GroupImpl::of(worker_.setting.group).seats();
  return seats ? seats->table().holder(worker) : 0;
}

/// True when any neighbor of the round has left, has come back or is another rank since the last
/// time that this worker met it.
bool NeighborMemory::note(const std::vector<Arrival>& arrivals, const RoundEdges& edges) {
  bool changed = false;
  for (const Arrival& arrival : arrivals) {
    const bool there = is_present(arrival) || arrival.state == Arrival::State::torn;
    changed |= presence_.note(arrival.worker, there ? std::optional(arrival.rank) : std::nullopt);
  }
  if (!worker_.setting.passes_mass()) return changed;
  for (const int reader : edges.destinations) {
    if (std::binary_search(edges.sources.begin(), edges.sources.end(), reader)) continue;
    const Arrival::State state = worker_.exchange.look(reader, worker_.progress.combinations);
    const bool there = state == Arrival::State::present;
    changed |= presence_.note(reader, there ? std::optional(rank_of(reader)) : std::nullopt);
  }
  return changed;
}

double NeighborMemory::epoch_after(const std::vector<Arrival>& arrivals,
                                   const RoundPlan::Round& round) {
  double newest = worker_.mixer.scalars().epoch();
  if (!worker_.setting.declared.remembers_neighbors) return newest;
  if (note(arrivals, round.edges)) ++newest;
  for (const Arrival& arrival : arrivals) {
    if (is_present(arrival))
      newest = std::max(newest, worker_.mixer.scalars().epoch_of(arrival.payload));
  }
  return newest;
}

/// The shares of absent readers stay with this worker.
double NeighborMemory::kept_shares(const RoundPlan::Round& round) const {
  double kept = 0;
  for (std::size_t k = 0; k < round.shares.size(); ++k) {
    if (presence_.is_absent(round.edges.destinations[k])) kept += round.shares[k];
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
