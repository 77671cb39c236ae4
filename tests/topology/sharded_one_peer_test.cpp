#include <algorithm>
#include <cmath>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <set>

#include "support/catch.hpp"
#include "topology/hosts.hpp"
#include "topology/placement.hpp"
#include "topology/sharded_oracle.hpp"

using namespace fast;
using namespace fast::testing;
using Catch::Matchers::Contains;

namespace {

constexpr double of_rounding = 1e-12;

struct ShardedShape {
  int hosts, per_host;
  int workers() const { return hosts * per_host; }
  Schedule schedule() const { return schedule::sharded_one_peer(per_host).make(workers()); }
};

const std::vector<ShardedShape>& sharded_shapes() {
  static const std::vector<ShardedShape> all{{1, 3}, {2, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 4},
                                             {4, 4}, {5, 3}, {6, 2}, {7, 2}, {8, 2}};
  return all;
}

/// W of a shard, from the rows of all workers.
Matrix matrix_of(const Topology& topology, int shard) {
  const auto n = static_cast<std::size_t>(topology.workers());
  Matrix w(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const MixingRow row = mixing_row(topology, static_cast<int>(i));
    const std::vector<double>& weights =
        row.shards.empty() ? row.weights : row.shards[static_cast<std::size_t>(shard)];
    double others = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      w[i][static_cast<std::size_t>(row.neighbors[k])] = weights[k];
      others += weights[k];
    }
    w[i][i] = 1 - others;
  }
  return w;
}

void check_near(const Matrix& found, const Matrix& expected) {
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::size_t j = 0; j < found.size(); ++j)
      REQUIRE(std::abs(found[i][j] - expected[i][j]) < of_rounding);
}

}  // namespace

TEST_CASE("each shard has the weights of the description, with a representative of its own") {
  for (const ShardedShape& shape : sharded_shapes()) {
    INFO(shape.hosts << " hosts of " << shape.per_host);
    const Schedule schedule = shape.schedule();
    for (std::int64_t t = 0; t < schedule.period(); ++t) {
      for (int shard = 0; shard < shape.per_host; ++shard) {
        INFO("round " << t << ", shard " << shard);
        check_near(matrix_of(schedule.at(t), shard),
                   sharded_matrix(shape.hosts, shape.per_host, t, shard));
      }
    }
  }
}

TEST_CASE("the product over a cycle is the exact average, for each shard") {
  for (const ShardedShape& shape : sharded_shapes()) {
    INFO(shape.hosts << " hosts of " << shape.per_host);
    const Schedule schedule = shape.schedule();
    const int cycle = sharded_cycle(shape.hosts, shape.per_host);
    REQUIRE(schedule.period() % cycle == 0);
    const auto n = static_cast<std::size_t>(shape.workers());
    const Matrix mean(n, std::vector<double>(n, 1.0 / shape.workers()));
    for (int shard = 0; shard < shape.per_host; ++shard) {
      for (std::int64_t first = 0; first < schedule.period(); first += cycle) {
        Matrix product = matrix_of(schedule.at(first), shard);
        for (int t = 1; t < cycle; ++t)
          product = times(matrix_of(schedule.at(first + t), shard), product);
        check_near(product, mean);
      }
    }
  }
}

TEST_CASE("each worker of a host carries one shard between hosts, the same at both ends") {
  for (const ShardedShape& shape : sharded_shapes()) {
    if (shape.hosts == 1 || shape.per_host == 1) continue;
    INFO(shape.hosts << " hosts of " << shape.per_host);
    const Schedule schedule = shape.schedule();
    const Schedule of_one = schedule::hierarchical_one_peer(shape.per_host).make(shape.workers());
    for (std::int64_t t = 0; t < schedule.period(); ++t) {
      const Topology topology = schedule.at(t), other = of_one.at(t);
      const InShards* shards = shards_of(topology);
      REQUIRE(shards != nullptr);
      REQUIRE(shards->shards() == shape.per_host);
      const bool between = host_edges_of(topology) == HostEdges::Kind::between;
      REQUIRE(between == (host_edges_of(other) == HostEdges::Kind::between));
      for (int host = 0; host < shape.hosts; ++host) {
        std::set<int> carried;
        int messages = 0;
        for (int place = 0; place < shape.per_host; ++place) {
          const int worker = host * shape.per_host + place;
          const auto own = shards->carried(worker);
          REQUIRE(own.has_value() == between);
          if (!between) continue;
          carried.insert(*own);
          for (const int peer : topology.in_neighbors(worker)) {
            REQUIRE(shards->carried(peer) == own);
            REQUIRE(topology.in_neighbors(peer) == std::vector<int>{worker});
          }
          messages += other.in_degree(worker);
          REQUIRE(topology.in_degree(worker) == static_cast<int>([&] {
                    int of_host = 0;
                    for (int p = 0; p < shape.per_host; ++p)
                      of_host += other.in_degree(host * shape.per_host + p);
                    return of_host;
                  }()));
        }
        if (between) REQUIRE(static_cast<int>(carried.size()) == shape.per_host);
        REQUIRE(messages <= 1);
      }
    }
  }
}

TEST_CASE(
    "each shard has as good a spectrum as hierarchical_one_peer, and its weights are listed") {
  const Schedule schedule = ShardedShape{4, 2}.schedule();
  const Spectrum found = spectrum(schedule);
  CHECK(found.doubly_stochastic);
  CHECK(found.gap == 1);
  CHECK(found.exact_after == 5);
  const MixingRow row = mixing_row(schedule.at(1), 1, WeightRule::automatic, true);
  REQUIRE(row.shards.size() == 2);
  CHECK(row.weights == row.shards[0]);
  CHECK(row.shards[0] == std::vector<double>{0});
  CHECK(row.shards[1] == std::vector<double>{0.375});  // lazy: half of min(vm, 1 - (1-v)/m)
  CHECK(mixing_row(schedule.at(1), 1, WeightRule::metropolis).shards.empty());
}

TEST_CASE("shards stay with their workers when ranks take other places") {
  const Schedule schedule = ShardedShape{2, 2}.schedule();
  const std::vector<int> worker_of_rank{2, 0, 3, 1};
  const Schedule moved = placed(schedule, worker_of_rank);
  for (std::int64_t t = 0; t < schedule.period(); ++t) {
    for (int shard = 0; shard < 2; ++shard) {
      const Matrix from = matrix_of(schedule.at(t), shard), to = matrix_of(moved.at(t), shard);
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < 4; ++j)
          CHECK(to[i][j] == from[static_cast<std::size_t>(worker_of_rank[i])]
                                [static_cast<std::size_t>(worker_of_rank[j])]);
        CHECK(shards_of(moved.at(t))->carried(static_cast<int>(i)) ==
              shards_of(schedule.at(t))->carried(worker_of_rank[i]));
      }
    }
  }
  CHECK(shards_of(placed(schedule::hierarchical_one_peer(2).make(4), worker_of_rank).at(1)) ==
        nullptr);
}

TEST_CASE("sharded_one_peer has a name and a key in files, and follows the hosts of a run") {
  const std::vector<int> hosts{9, 4, 9, 4};
  const Schedule named = topology_on_hosts("sharded-one-peer", hosts).make(4);
  CHECK(named.at(0).in_neighbors(0) == std::vector<int>{2});
  CHECK(shards_of(named.at(0))->shards() == 2);
  CHECK(shards_of(topology_by_name("sharded_one_peer").make(8).at(0))->shards() == 4);
  const TopologyRule file =
      parse_topology("schedule = \"sharded_one_peer\"\nworkers_per_host = 3", "a.toml");
  CHECK(shards_of(file.make(6).at(1))->shards() == 3);
  CHECK_THROWS_WITH(parse_topology("schedule = \"sharded_one_peer\"\nlinks = 2", "a.toml"),
                    Contains("links"));
  CHECK_THROWS_WITH(topology_on_hosts("sharded_one_peer", {0, 1, 1}).make(3),
                    Contains("sharded_one_peer: the host of worker 0 has 1 workers, that of worker "
                             "1 has 2") &&
                        Contains("the same number of workers"));
  CHECK_THROWS_WITH(file.make(7), Contains("7 workers in hosts of 3"));
}
