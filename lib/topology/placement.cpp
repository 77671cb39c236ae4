#include "topology/placement.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <memory>
#include <numeric>
#include <utility>

#include "topology/hosts.hpp"
#include "topology/stencil_graph.hpp"

namespace fast {
namespace {

// Beyond it shapes are not all tried, only those of a host's size.
constexpr std::size_t most_tried_workers = 4096;
constexpr std::int64_t most_rounds_counted = 64;

using Lists = std::vector<std::vector<int>>;

// Whom each worker reads, over a period.
Lists edges_of(const Schedule& schedule) {
  Lists reads(static_cast<std::size_t>(schedule.workers()));
  for (std::int64_t t = 0; t < std::min(schedule.period(), most_rounds_counted); ++t) {
    const Topology topology = schedule.at(t);
    for (int i = 0; i < topology.workers(); ++i) {
      const std::vector<int> in = topology.in_neighbors(i);
      reads[i].insert(reads[i].end(), in.begin(), in.end());
    }
  }
  return reads;
}

std::int64_t edges_cut(const Lists& reads, const std::vector<int>& host_of_worker) {
  std::int64_t cut = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    for (const int j : reads[i]) cut += host_of_worker[i] != host_of_worker[j] ? 1 : 0;
  }
  return cut;
}

// All ways to divide every side, as block sides.
std::vector<std::vector<int>> block_shapes(const std::vector<int>& sides) {
  std::vector<std::vector<int>> shapes = {{}};
  for (const int side : sides) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& shape : shapes) {
      for (int block = 1; block <= side; ++block) {
        if (side % block != 0) continue;
        longer.push_back(shape);
        longer.back().push_back(block);
      }
    }
    shapes = std::move(longer);
  }
  return shapes;
}

int volume(const std::vector<int>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
}

// Workers block by block; `to_and_fro` turns every second line of blocks round.
std::vector<int> in_blocks(const std::vector<int>& sides, const std::vector<int>& shape,
                           bool to_and_fro) {
  std::vector<std::pair<std::vector<int>, int>> keyed;
  for (int worker = 0; worker < volume(sides); ++worker) {
    std::vector<int> place(sides.size()), key;
    for (std::size_t d = sides.size(), rest = static_cast<std::size_t>(worker); d-- > 0;) {
      place[d] = static_cast<int>(rest % static_cast<std::size_t>(sides[d]));
      rest /= static_cast<std::size_t>(sides[d]);
    }
    int turns = 0;
    for (std::size_t d = 0; d < sides.size(); ++d) {
      const int block = place[d] / shape[d], last = sides[d] / shape[d] - 1;
      key.push_back(to_and_fro && turns % 2 == 1 ? last - block : block);
      turns += block;
    }
    for (std::size_t d = 0; d < sides.size(); ++d) key.push_back(place[d] % shape[d]);
    keyed.emplace_back(std::move(key), worker);
  }
  std::ranges::sort(keyed);
  std::vector<int> order;
  for (const auto& [unused, worker] : keyed) order.push_back(worker);
  return order;
}

std::vector<std::vector<int>> candidate_orders(const Schedule& schedule, std::size_t first_host) {
  std::vector<int> plain(static_cast<std::size_t>(schedule.workers()));
  std::iota(plain.begin(), plain.end(), 0);
  std::vector<std::vector<int>> orders = {plain};
  const Topology first = schedule.at(0);
  const auto* on_grid = dynamic_cast<const OnGrid*>(&first.graph());
  if (on_grid == nullptr) return orders;
  const std::vector<int>& sides = on_grid->grid().sides;
  for (const std::vector<int>& shape : block_shapes(sides)) {
    const auto size = static_cast<std::size_t>(volume(shape));
    if (plain.size() > most_tried_workers && size != first_host) continue;
    for (const bool to_and_fro : {false, true}) {
      orders.push_back(in_blocks(sides, shape, to_and_fro));
    }
  }
  return orders;
}

class PlacedGraph : public Graph, public HostEdges, public InShards {
 public:
  PlacedGraph(Topology inner, std::shared_ptr<const std::vector<int>> worker_of_rank,
              std::shared_ptr<const std::vector<int>> rank_of_worker)
      : inner_(std::move(inner)),
        worker_of_rank_(std::move(worker_of_rank)),
        rank_of_worker_(std::move(rank_of_worker)) {}

  int workers() const override { return inner_.workers(); }
  std::vector<int> in_neighbors(int rank) const override {
    return ranks(inner_.in_neighbors(worker(rank)));
  }
  std::vector<int> out_neighbors(int rank) const override {
    return ranks(inner_.out_neighbors(worker(rank)));
  }
  int in_degree(int rank) const override { return inner_.in_degree(worker(rank)); }
  int out_degree(int rank) const override { return inner_.out_degree(worker(rank)); }
  bool is_symmetric() const override { return inner_.is_symmetric(); }
  Kind host_edges() const override { return host_edges_of(inner_); }
  int shards() const override {
    const InShards* inner = shards_of(inner_);
    return inner == nullptr ? 1 : inner->shards();
  }
  bool differ() const override {
    const InShards* inner = shards_of(inner_);
    return inner != nullptr && inner->differ();
  }
  std::vector<double> shard_weights(int shard, int rank) const override {
    return by_rank(rank, shards_of(inner_)->shard_weights(shard, worker(rank)));
  }
  std::optional<int> carried(int rank) const override {
    return shards_of(inner_)->carried(worker(rank));
  }

 protected:
  int worker(int rank) const { return (*worker_of_rank_)[rank]; }
  int rank(int worker) const { return (*rank_of_worker_)[worker]; }
  const Topology& inner() const { return inner_; }
  // Weights along the inner neighbors, along those of the rank.
  std::vector<double> by_rank(int rank, const std::vector<double>& weights) const {
    const std::vector<int> workers = inner_.in_neighbors(worker(rank));
    std::vector<std::pair<int, double>> sorted;
    for (std::size_t k = 0; k < workers.size(); ++k)
      sorted.emplace_back(this->rank(workers[k]), weights[k]);
    std::ranges::sort(sorted);
    std::vector<double> result;
    for (const auto& [unused, weight] : sorted) result.push_back(weight);
    return result;
  }

 private:
  std::vector<int> ranks(std::vector<int> workers) const {
    for (int& worker : workers) worker = rank(worker);
    std::ranges::sort(workers);
    return workers;
  }

  Topology inner_;
  std::shared_ptr<const std::vector<int>> worker_of_rank_, rank_of_worker_;
};

class PlacedWeights final : public PlacedGraph, public GraphWeights {
 public:
  using PlacedGraph::PlacedGraph;

  std::vector<double> in_weights(int rank) const override {
    return by_rank(rank, inner().given_weights(worker(rank)));
  }
  double self_weight(int rank) const override { return inner().given_self_weight(worker(rank)); }
};

}  // namespace

Placement place(const Schedule& schedule, const std::vector<int>& host_of_rank) {
  const auto n = static_cast<std::size_t>(schedule.workers());
  require(host_of_rank.size() == n, ErrorKind::topology,
          "place: hosts of {} ranks, {} has {} workers; give one host a worker",
          host_of_rank.size(), schedule.name(), n);
  std::vector<int> ranks;
  for (const std::vector<int>& host : ranks_by_host(host_of_rank))
    ranks.insert(ranks.end(), host.begin(), host.end());
  const auto first_host =
      static_cast<std::size_t>(std::ranges::count(host_of_rank, host_of_rank[0]));

  Placement best;
  best.worker_of_rank.resize(n);
  std::iota(best.worker_of_rank.begin(), best.worker_of_rank.end(), 0);
  const Lists reads = edges_of(schedule);
  for (const std::vector<int>& own : reads) best.edges += static_cast<std::int64_t>(own.size());
  best.cut_before = best.cut_after = edges_cut(reads, host_of_rank);
  std::vector<int> host_of_worker(n);
  for (const std::vector<int>& order : candidate_orders(schedule, first_host)) {
    for (std::size_t k = 0; k < n; ++k) host_of_worker[order[k]] = host_of_rank[ranks[k]];
    const std::int64_t cut = edges_cut(reads, host_of_worker);
    if (cut >= best.cut_after) continue;
    best.cut_after = cut;
    for (std::size_t k = 0; k < n; ++k) best.worker_of_rank[ranks[k]] = order[k];
  }
  return best;
}

Schedule placed(const Schedule& schedule, const std::vector<int>& worker_of_rank) {
  std::vector<int> inverse(worker_of_rank.size(), -1);
  for (std::size_t r = 0; r < worker_of_rank.size(); ++r) {
    const auto worker = static_cast<std::size_t>(worker_of_rank[r]);
    require(worker < inverse.size() && inverse[worker] < 0, ErrorKind::topology,
            "placed: rank {} takes place {}, which is taken or is not among the {} places", r,
            worker_of_rank[r], inverse.size());
    inverse[worker] = static_cast<int>(r);
  }
  require(static_cast<int>(inverse.size()) == schedule.workers(), ErrorKind::topology,
          "placed: places of {} ranks, {} has {} workers; give one a worker", inverse.size(),
          schedule.name(), schedule.workers());
  const auto forth = std::make_shared<const std::vector<int>>(worker_of_rank);
  const auto back = std::make_shared<const std::vector<int>>(std::move(inverse));
  const auto at_round = [=](std::int64_t round) {
    const Topology inner = schedule.at(round);
    std::shared_ptr<const Graph> graph;
    if (inner.has_given_weights()) {
      graph = std::make_shared<PlacedWeights>(inner, forth, back);
    } else {
      graph = std::make_shared<PlacedGraph>(inner, forth, back);
    }
    return Topology(inner.name(), std::move(graph))
        .with_weights(inner.preferred_weights(), inner.prefers_lazy());
  };
  if (schedule.is_static()) return at_round(0);
  return {schedule.name(), schedule.workers(), schedule.period(), at_round};
}

}  // namespace fast
