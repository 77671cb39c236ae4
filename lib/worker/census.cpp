#include "worker/census.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fast::worker {
namespace {

constexpr Seconds look_period{0.05};
}  // namespace

std::uint64_t beats_in(Seconds time) {
  return static_cast<std::uint64_t>(std::ceil(time.count() * beats_per_second)) + 1;
}

Census::Census(std::shared_ptr<const Peers> peers, int self, std::vector<int> watched,
               Seconds silent_after)
    : peers_(std::move(peers)), self_(self), silent_after_(beats_in(silent_after)) {
  for (const int worker : watched) watches_.push_back({worker, 0, 0});
}

bool Census::look() {
  const auto clock = Clock::now();
  if (clock - looked_ < look_period) return false;
  looked_ = clock;
  const std::uint64_t now = peers_->peer(self_).heartbeat;
  std::vector<int> silent;
  for (Watch& watch : watches_) {
    const PeerState peer = peers_->peer(watch.worker);
    if (std::exchange(watch.heartbeat, peer.heartbeat) != peer.heartbeat) watch.moved = now;
    const bool left = peer.status == WorkerStatus::finished;
    if (!left && now - watch.moved > silent_after_) silent.push_back(watch.worker);
  }
  const bool changed = silent != silent_;
  silent_ = std::move(silent);
  return changed;
}

}  // namespace fast::worker
