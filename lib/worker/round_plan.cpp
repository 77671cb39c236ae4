#include "worker/round_plan.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>

#include "combine/shards.hpp"
#include "topology/hosts.hpp"
#include "worker/start/meetings.hpp"

namespace fast::worker {
namespace {
constexpr std::size_t most_remembered = 1024;

/// Of a tree: for each neighbor of the worker, which of `vectors` it sends to the worker. The
/// worker sends it that many from the last one. Numbered from worker 0 on: no two neighbors have
/// the same.
std::vector<int> vectors_to(const Topology& tree, int worker, int vectors) {
  std::vector<int> up(static_cast<std::size_t>(tree.workers()), -1);  // to the side of worker 0
  std::vector<int> open{0}, found;
  for (std::size_t next = 0; next < open.size(); ++next) {
    const int at = open[next];
    const int own = up[static_cast<std::size_t>(at)];
    int down = vectors - 1;
    for (const int other : tree.in_neighbors(at)) {
      int& to_here = up[static_cast<std::size_t>(other)];
      const bool is_parent = own >= 0 && (to_here >= 0 || other == 0);
      if (!is_parent) {
        if (down == own) --down;
        to_here = vectors - 1 - down--;
        open.push_back(other);
      }
      if (at == worker) found.push_back(is_parent ? vectors - 1 - own : to_here);
    }
  }
  return found;
}
}  // namespace

RoundPlan::RoundPlan(Schedule schedule, int worker, WeightRule rule, bool lazy, bool passes_mass,
                     std::size_t vector_bytes, int by_edge)
    : schedules_{{0, std::move(schedule), rule, lazy}},
      worker_(worker),
      passes_mass_(passes_mass),
      vector_bytes_(vector_bytes),
      by_edge_(by_edge) {}

void RoundPlan::change(Schedule schedule, std::int64_t from, WeightRule rule, bool lazy) {
  const std::lock_guard lock(mutex_);
  schedules_.push_back({from, std::move(schedule), rule, lazy});
  rounds_.clear();
  meetings_.reset();
}

void RoundPlan::skip_to(std::int64_t next) {
  const std::lock_guard lock(mutex_);
  if (schedules_.back().from >= next) ++schedules_.back().from;
}

const RoundPlan::Piece& RoundPlan::piece(std::int64_t combination) const {
  std::size_t last = schedules_.size() - 1;
  while (schedules_[last].from > combination) --last;
  return schedules_[last];
}

std::shared_ptr<const RoundPlan::Round> RoundPlan::at(std::int64_t combination) {
  const std::lock_guard lock(mutex_);
  // Only the newest schedule's rounds are remembered, by their place in the period.
  const Piece& newest = schedules_.back();
  if (combination < newest.from) return make(combination);
  const std::int64_t period = newest.schedule.period();
  const std::int64_t key = period > 0 ? combination % period : combination;
  const auto known = rounds_.find(key);
  if (known != rounds_.end()) return known->second;
  if (rounds_.size() >= most_remembered) rounds_.clear();
  return rounds_.emplace(key, make(combination)).first->second;
}

algorithm::Meetings RoundPlan::meetings() {
  const std::lock_guard lock(mutex_);
  if (!meetings_) meetings_ = meetings_of(schedules_.back().schedule);
  return *meetings_;
}

std::shared_ptr<const RoundPlan::Round> RoundPlan::make(std::int64_t combination) const {
  const Piece& now = piece(combination);
  const Topology topology = now.schedule.at(combination);
  auto round = std::make_shared<Round>();
  round->row = mixing_row(topology, worker_, now.rule, now.lazy);
  round->edges = {round->row.neighbors, topology.out_neighbors(worker_)};
  const std::size_t shards = round->row.shards.size();
  if (shards > 0) {
    if (const auto carried = shards_of(topology)->carried(worker_))
      round->edges.part =
          combine::shard_part(vector_bytes_, shards, static_cast<std::size_t>(*carried));
  }
  if (by_edge_ > 0) {
    round->vectors = vectors_to(topology, worker_, by_edge_);
    const std::size_t stride = PayloadShape{vector_bytes_}.stride_bytes();
    const auto part_of = [&](int vector) {
      const std::size_t begin = static_cast<std::size_t>(vector) * stride;
      return PayloadPart{begin, begin + vector_bytes_};
    };
    for (const int vector : round->vectors) {
      round->edges.source_parts.push_back(part_of(vector));
      round->edges.destination_parts.push_back(part_of(by_edge_ - 1 - vector));
    }
  }
  round->between_sites = host_edges_of(topology) == HostEdges::Kind::between;
  if (!passes_mass_) return round;
  for (const int reader : round->edges.destinations) {
    const MixingRow row = mixing_row(topology, reader, now.rule, now.lazy);
    const auto self = std::ranges::lower_bound(row.neighbors, worker_);
    round->shares.push_back(row.weights[static_cast<std::size_t>(self - row.neighbors.begin())]);
  }
  return round;
}

}  // namespace fast::worker
