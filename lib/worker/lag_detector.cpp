#include "worker/lag_detector.hpp"

#include <algorithm>

#include "membership/liveness.hpp"

namespace fast::worker {
namespace {

/// Rounds that a neighbor's slots may lie ahead in the ordinary course of staleness 0.
constexpr std::int64_t usual_lead = 2;

}  // namespace

LagDetector::LagDetector(const Context& context, const Peers& peers, RoundPlan& plan)
    : worker_(context), peers_(peers), plan_(plan) {}

/// Judged by the heartbeats of this worker's own process: they stop with it.
bool LagDetector::was_stopped() {
  const auto now = Clock::now();
  const std::uint64_t beats = peers_.peer(worker_.rank()).heartbeat;
  const Seconds passed = now - std::exchange(asked_, now);
  const auto beaten =
      static_cast<double>(beats - std::exchange(beats_, beats)) / membership::beats_per_second;
  return passed > patience() && beaten < passed.count() / 2;
}

/// Each neighbor of the round has its own measured one. This worker's signs of life are about as
/// regular as that neighbor's.
Seconds LagDetector::patience() const {
  Seconds shortest = Seconds::max();
  const std::shared_ptr<const RoundPlan::Round> round = plan_.at(worker_.progress.combinations);
  for (const int neighbor : round->edges.sources) {
    shortest = std::min(shortest, peers_.suspect_after(neighbor));
  }
  return shortest;
}

std::int64_t LagDetector::furthest_neighbor() const {
  const std::int64_t own = worker_.progress.combinations;
  std::int64_t furthest = own;
  const std::shared_ptr<const RoundPlan::Round> round = plan_.at(own);
  for (const int neighbor : round->edges.sources) {
    const PeerState peer = peers_.peer(neighbor);
    if (peer.status == WorkerStatus::running) furthest = std::max(furthest, peer.progress);
  }
  return furthest;
}

bool LagDetector::keeps_up(const std::vector<Arrival>& arrivals) {
  const bool stopped = was_stopped();
  const auto behind = [this] { return furthest_neighbor() - worker_.progress.combinations; };
  if (worker_.setting.exact()) {
    const auto any = [&](Arrival::State state) {
      return std::ranges::any_of(
          arrivals, [state](const Arrival& arrival) { return arrival.state == state; });
    };
    const bool left_behind = any(Arrival::State::missed) && !any(Arrival::State::present);
    return !left_behind || behind() <= usual_lead;
  }
  if (worker_.setting.sends_sums()) return true;  // what it missed is in its neighbors' sums
  return !stopped || behind() <= worker_.options().rejoin_after;
}

}  // namespace fast::worker
