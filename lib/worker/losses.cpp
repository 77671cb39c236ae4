// Workers that die, or seem to, and the end of training with those that are left.
#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/parts.hpp>
#include <thread>

#include "exchange/failure_detector.hpp"
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
    census_.emplace(link_.peers, std::move(watched));
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

/// Until every worker has finished or is lost. Those that are known to be lost have been waited
/// for; any other suspect is given its time once more, as of workers that are no neighbors only a
/// look brings signs of life.
void Engine::await_finish() {
  finish();
  const auto own = [this] { return link_.peers->peer(group_.rank()); };
  const std::uint64_t began = own().heartbeat;
  exchange::Patience patience(options_.deadline, own());
  std::vector<int> waited_for, awaited;
  waited_for.swap(lost_);
  for (int worker = 0; worker < group_.size(); ++worker) awaited.push_back(worker);
  const auto is_over = [&](int worker) {
    const PeerState peer = link_.peers->peer(worker);
    require(peer.status != WorkerStatus::failed, ErrorKind::peer_failed,
            "Worker: worker {} stops because worker {} failed", group_.rank(), worker);
    if (peer.status == WorkerStatus::finished) return true;
    const PeerState now = own();
    const bool known = std::binary_search(waited_for.begin(), waited_for.end(), worker);
    const bool in_time = now.heartbeat - began <= exchange::beats_in(options_.suspect_after);
    const bool lost = link_.peers->is_suspect(worker) && (known || !in_time);
    if (lost) lost_.push_back(worker);
    require(lost || !patience.is_over(now), ErrorKind::deadline,
            "Worker: worker {} has finished and waited {:.1f} s for worker {}, which has finished "
            "{} rounds, {:.1f} s without progress of any worker; look for what holds it, or allow "
            "more with a longer deadline",
            group_.rank(), patience.waited(now).count(), worker, peer.progress,
            patience.standstill(now).count());
    return lost;
  };
  while (std::erase_if(awaited, is_over), !awaited.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::sort(lost_.begin(), lost_.end());
}

}  // namespace fast::worker
