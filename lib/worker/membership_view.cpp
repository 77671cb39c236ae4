#include "worker/membership_view.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/topology/topology.hpp>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

#include "exchange/group_impl.hpp"
#include "membership/liveness.hpp"

namespace fast::worker {
namespace {

/// Whose ranks are on this host. Seats change hands, and so their hosts.
std::vector<int> others_of_this_host(const WorkerConfig& setting) {
  const Group& group = setting.group;
  const Group everyone = group.everyone();
  const std::vector<int> hosts = everyone.hosts();
  const auto host = [&](int rank) { return hosts[static_cast<std::size_t>(rank)]; };
  std::vector<int> others;
  for (int worker = 0; worker < group.size(); ++worker) {
    const int rank = setting.members ? setting.members->map().holder(worker) : worker;
    if (worker == group.rank() || rank == membership::nobody) continue;
    if (host(rank) == host(everyone.rank())) others.push_back(worker);
  }
  return others;
}

}  // namespace

MembershipView::MembershipView(const WorkerConfig& setting, std::shared_ptr<Peers> peers,
                               const RoundPlan& plan)
    : setting_(setting), peers_(std::move(peers)), plan_(plan) {}

/// A worker that is about to join has no weights yet.
bool MembershipView::has_begun(int worker) const {
  if (!setting_.members) return true;
  const membership::RankMap& map = setting_.members->map();
  return worker < map.founders() || map.has_begun(map.holder(worker));
}

Departures MembershipView::departed(const std::vector<int>& ask) const {
  Departures departures{{}, lost_, left_};
  for (const int worker : ask) {
    if (peers_->peer(worker).status == WorkerStatus::finished) {
      departures.finished.push_back(worker);
    }
  }
  return departures;
}

/// Also between exchanges, in which a worker would wait for others.
void MembershipView::look_around() {
  const auto link = GroupImpl::of(setting_.group.everyone()).latest_link();
  const std::vector<int> failed = link ? link->heartbeat()->board()->failed() : std::vector<int>{};
  require(failed.empty(), ErrorKind::peer_failed,
          "Worker: worker {} stops because worker {} failed", setting_.group.rank(),
          fmt::join(failed, ", "));
  looked_ = Clock::now();
  std::vector<int> silent, left;
  for (const int worker : others_of_this_host(setting_)) {
    const WorkerStatus status = peers_->peer(worker).status;
    if (status == WorkerStatus::left) left.push_back(worker);
    if (!has_ended(status) && peers_->is_suspect(worker)) silent.push_back(worker);
  }
  if (silent == lost_ && left == left_) return;
  lost_ = std::move(silent);
  left_ = std::move(left);
  warn_of_parts();
}

/// Lost or left.
std::vector<int> MembershipView::gone() const {
  std::vector<int> gone;
  std::set_union(lost_.begin(), lost_.end(), left_.begin(), left_.end(), std::back_inserter(gone));
  return gone;
}

/// The lowest worker of each part warns.
void MembershipView::warn_of_parts() const {
  const int rank = setting_.group.rank();
  const std::vector<int> gone = this->gone();
  const auto parts = living_parts(plan_.schedule(), gone);
  const bool speaks = std::ranges::any_of(
      parts, [&](const std::vector<int>& part) { return part.front() == rank; });
  if (parts.size() < 2 || !speaks || !setting_.options.log) return;
  setting_.options.log(
      LogLevel::warning,
      fmt::format("worker {}: without {} the topology falls into {} parts, {}; each trains on by "
                  "itself",
                  rank, fmt::join(gone, ", "), parts.size(), describe_parts(parts)));
}

/// Those that were lost and have shown a sign of life since, or have ended after all.
std::vector<int> MembershipView::take_back() {
  const auto begin = std::partition(lost_.begin(), lost_.end(), [&](int worker) {
    return !has_ended(peers_->peer(worker).status) && peers_->is_suspect(worker);
  });
  const std::vector<int> back(begin, lost_.end());
  lost_.erase(begin, lost_.end());
  return back;
}

/// Workers that are known to be lost are not waited for again, unless they are back when all others
/// have finished. Any other suspect gets its full time once more: of workers that are no neighbors
/// only a look brings signs of life.
void MembershipView::await_finish() {
  const int rank = setting_.group.rank();
  const auto own = [&] { return peers_->peer(rank); };
  const std::uint64_t began = own().heartbeat;
  membership::ProgressDeadline deadline(setting_.options.deadline, own());
  std::vector<int> known, awaited(static_cast<std::size_t>(setting_.group.size()));
  known.swap(lost_);
  left_.clear();
  std::iota(awaited.begin(), awaited.end(), 0);
  const auto is_over = [&](int worker) {
    const PeerState peer = peers_->peer(worker);
    require(peer.status != WorkerStatus::failed, ErrorKind::peer_failed,
            "Worker: worker {} stops because worker {} failed", rank, worker);
    if (peer.status == WorkerStatus::left) left_.push_back(worker);
    if (has_ended(peer.status)) return true;
    const PeerState now = own();
    const bool is_known = std::ranges::binary_search(known, worker);
    const bool in_time =
        now.heartbeat - began <= membership::beats_in(peers_->suspect_after(worker));
    const bool lost = peers_->is_suspect(worker) && (is_known || !in_time);
    if (lost) lost_.push_back(worker);
    require(lost || !deadline.expired(now), ErrorKind::deadline,
            "Worker: worker {} has finished and waited {:.1f} s for worker {}, which has finished "
            "{} rounds, {:.1f} s without progress of any worker; look for what holds it, or allow "
            "more with a longer deadline",
            rank, deadline.waited(now).count(), worker, peer.progress,
            deadline.standstill(now).count());
    return lost;
  };
  for (; !awaited.empty(); awaited = take_back()) {
    while (std::erase_if(awaited, is_over), !awaited.empty()) {
      check_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::ranges::sort(lost_);
  std::ranges::sort(left_);
}

std::vector<int> MembershipView::own_part(bool at_end) const {
  const int rank = setting_.group.rank();
  if (!at_end || gone().empty()) {
    std::vector<int> all(static_cast<std::size_t>(setting_.group.size()));
    std::iota(all.begin(), all.end(), 0);
    std::erase_if(all,
                  [&](int w) { return std::ranges::binary_search(left_, w) || !has_begun(w); });
    return all;
  }
  const auto parts = living_parts(plan_.schedule(), gone());
  const auto own = std::ranges::find_if(
      parts, [&](const std::vector<int>& part) { return std::ranges::binary_search(part, rank); });
  return own == parts.end() ? std::vector<int>{rank} : *own;
}

}  // namespace fast::worker
