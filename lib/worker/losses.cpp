// Workers that die, or seem to, and the end of training with those that are left.
#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/parts.hpp>
#include <thread>

#include "worker/engine.hpp"

namespace fast::worker {

/// Of the workers on this host; others are looked at in await_finish().
void Engine::take_census() {
  if (!census_) {
    const std::vector<int> hosts = group_.hosts();
    std::vector<int> watched;
    for (int worker = 0; worker < group_.size(); ++worker) {
      const auto host = [&](int w) { return hosts[static_cast<std::size_t>(w)]; };
      if (worker != group_.rank() && host(worker) == host(group_.rank())) watched.push_back(worker);
    }
    census_.emplace(link_.peers, group_.rank(), std::move(watched), options_.suspect_after);
  }
  if (!census_->look()) return;
  lost_ = census_->silent();
  const auto parts = living_parts(schedule(), lost_);
  const bool speaks = std::any_of(parts.begin(), parts.end(), [&](const std::vector<int>& part) {
    return part.front() == group_.rank();
  });
  if (parts.size() > 1 && speaks && options_.log) {
    options_.log(
        LogLevel::warning,
        fmt::format("worker {}: without {} the topology falls into {} parts, {}; each trains "
                    "on by itself",
                    group_.rank(), fmt::join(lost_, ", "), parts.size(), describe_parts(parts)));
  }
}

void Engine::await_finish() {
  finish();
  const Deadline deadline(options_.deadline);
  struct Watch {
    std::uint64_t heartbeat = 0;
    std::uint64_t moved = 0;  ///< in this worker's own beats: it may be stopped itself
    bool over = false;
  };
  std::vector<Watch> watches(static_cast<std::size_t>(group_.size()));
  for (const int silent : lost_) {  // they have been waited for
    watches[static_cast<std::size_t>(silent)].heartbeat = link_.peers->peer(silent).heartbeat;
  }
  lost_.clear();
  for (int waiting = group_.size(); waiting > 0;) {
    for (int worker = 0; worker < group_.size(); ++worker) {
      Watch& watch = watches[static_cast<std::size_t>(worker)];
      if (watch.over) continue;
      const PeerState peer = link_.peers->peer(worker);
      require(peer.status != WorkerStatus::failed, ErrorKind::peer_failed,
              "Worker: worker {} stops because worker {} failed", group_.rank(), worker);
      const std::uint64_t now = link_.peers->peer(group_.rank()).heartbeat;
      if (std::exchange(watch.heartbeat, peer.heartbeat) != peer.heartbeat) watch.moved = now;
      const bool silent = now - watch.moved > beats_in(options_.suspect_after);
      watch.over = silent || peer.status == WorkerStatus::finished;
      if (watch.over) --waiting;
      if (watch.over && peer.status != WorkerStatus::finished) lost_.push_back(worker);
      require(watch.over || !deadline.expired(), ErrorKind::deadline,
              "Worker: worker {} has finished and waited {:.1f} s for worker {}, which has "
              "finished {} rounds; allow more with a longer deadline",
              group_.rank(), deadline.elapsed_s(), worker, peer.progress);
    }
    if (waiting > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::sort(lost_.begin(), lost_.end());
}

}  // namespace fast::worker
