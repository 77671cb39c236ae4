#include "worker/census.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace fast::worker {
namespace {

constexpr Seconds look_period{0.05};
constexpr std::int64_t most_rounds = 64;  ///< looked at, of schedules without a short period

int root_of(std::vector<int>& parent, int worker) {
  while (parent[static_cast<std::size_t>(worker)] != worker) {
    worker = parent[static_cast<std::size_t>(worker)] =
        parent[static_cast<std::size_t>(parent[static_cast<std::size_t>(worker)])];
  }
  return worker;
}

}  // namespace

std::vector<std::vector<int>> living_parts(const Schedule& schedule, const std::vector<int>& dead) {
  const int workers = schedule.workers();
  std::vector<bool> lives(static_cast<std::size_t>(workers), true);
  for (const int worker : dead) lives[static_cast<std::size_t>(worker)] = false;
  std::vector<int> parent(static_cast<std::size_t>(workers));
  std::iota(parent.begin(), parent.end(), 0);
  const std::int64_t period = schedule.period();
  const std::int64_t rounds = period > 0 ? std::min(period, most_rounds) : most_rounds;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const Topology topology = schedule.at(round);
    for (int worker = 0; worker < workers; ++worker) {
      for (const int neighbor : topology.in_neighbors(worker)) {
        if (!lives[static_cast<std::size_t>(worker)] || !lives[static_cast<std::size_t>(neighbor)])
          continue;
        const int a = root_of(parent, worker), b = root_of(parent, neighbor);
        parent[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
      }
    }
  }
  std::vector<std::vector<int>> by_root(static_cast<std::size_t>(workers)), parts;
  for (int worker = 0; worker < workers; ++worker) {
    if (lives[static_cast<std::size_t>(worker)])
      by_root[static_cast<std::size_t>(root_of(parent, worker))].push_back(worker);
  }
  for (auto& part : by_root) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

std::string describe_parts(const std::vector<std::vector<int>>& parts) {
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.push_back(fmt::format("{{{}}}", fmt::join(part, ", ")));
  return fmt::format("{}", fmt::join(texts, " and "));
}

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
