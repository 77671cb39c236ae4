#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <map>
#include <set>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology/graph_checks.hpp"
#include "topology/hosts.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

constexpr double rounding = 1e-12;

using Values = std::vector<double>;

/// A missing worker's weight goes to the reader's own value.
double averaged(const MixingRow& row, const Values& x, std::size_t own, const std::set<int>& dead) {
  double sum = x[own];
  for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
    if (dead.count(row.neighbors[k]) != 0) continue;
    sum += row.weights[k] * (x[static_cast<std::size_t>(row.neighbors[k])] - x[own]);
  }
  return sum;
}

Values after_round(const Topology& topology, const Values& x, const std::set<int>& dead = {}) {
  Values next = x;
  for (int i = 0; i < topology.workers(); ++i) {
    if (dead.count(i) != 0) continue;
    const auto own = static_cast<std::size_t>(i);
    next[own] = averaged(mixing_row(topology, i), x, own, dead);
  }
  return next;
}

int base2_rounds(int hosts) {
  return hosts == 1 ? 0 : static_cast<int>(schedule::base(1).make(hosts).period());
}

/// Rounds until the average is exact, from the rule's description.
int cycle_of(int hosts, int per_host) {
  if (per_host == 1) return std::max(1, base2_rounds(hosts));
  return 1 + 2 * base2_rounds(hosts);
}

struct HostShape {
  int hosts, per_host, links;
  int workers() const { return hosts * per_host; }
  Schedule schedule() const {
    return schedule::hierarchical_one_peer(per_host, links).make(workers());
  }
};

std::vector<HostShape> shapes() {
  std::vector<HostShape> all;
  for (const int hosts : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16}) {
    for (const int per_host : {1, 2, 3, 4, 7, 8}) {
      for (const int links : {1, 2, 8}) all.push_back({hosts, per_host, links});
    }
  }
  return all;
}

double spread(const Values& x, const std::set<int>& dead) {
  double low = INFINITY, high = -INFINITY;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (dead.count(static_cast<int>(i)) != 0) continue;
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return high - low;
}

}  // namespace

TEST_CASE("hosts come to the exact average in every cycle of hierarchical_one_peer") {
  for (const HostShape& shape : shapes()) {
    INFO(shape.hosts << " hosts of " << shape.per_host << ", links " << shape.links);
    const Schedule schedule = shape.schedule();
    const int cycle = cycle_of(shape.hosts, shape.per_host);
    REQUIRE(schedule.period() % cycle == 0);
    for (std::int64_t first = 0; first < schedule.period(); first += cycle) {
      // Unit vectors at every third worker: columns of the product.
      std::vector<Values> columns;
      for (int column = 0; column < shape.workers(); column += 3) {
        columns.emplace_back(static_cast<std::size_t>(shape.workers()));
        columns.back()[static_cast<std::size_t>(column)] = 1;
      }
      for (int t = 0; t < cycle; ++t) {
        const Topology round = schedule.at(first + t);
        for (Values& x : columns) x = after_round(round, x);
      }
      for (const Values& x : columns) {
        for (const double value : x) REQUIRE(std::abs(value - 1.0 / shape.workers()) < rounding);
      }
    }
  }
}

TEST_CASE("a power of two of hosts needs log2 of their number of exchange rounds") {
  for (const int hosts : {2, 4, 8, 16, 64}) {
    const Schedule schedule = HostShape{hosts, 4, 1}.schedule();
    const int log2 = static_cast<int>(std::lround(std::log2(hosts)));
    CHECK(schedule.period() == 4 * (1 + 2 * log2));
    int exchanges = 0;
    for (int t = 0; t < 1 + 2 * log2; ++t) exchanges += schedule.at(t).name() == "between hosts";
    CHECK(exchanges == log2);
  }
}

TEST_CASE("one payload enters and leaves a host in an exchange round, none in the others") {
  for (const HostShape& shape : shapes()) {
    INFO(shape.hosts << " hosts of " << shape.per_host << ", links " << shape.links);
    const Schedule schedule = shape.schedule();
    const bool is_power_of_two = (shape.hosts & (shape.hosts - 1)) == 0;
    const int most = std::min(shape.links, shape.per_host);
    int last_exchange = -2;
    for (int t = 0; t < schedule.period(); ++t) {
      const Topology topology = schedule.at(t);
      std::map<int, int> entering, leaving;
      for (int i = 0; i < shape.workers(); ++i) {
        for (const int j : topology.in_neighbors(i)) {
          if (i / shape.per_host == j / shape.per_host) continue;
          ++entering[i / shape.per_host];
          ++leaving[j / shape.per_host];
        }
      }
      REQUIRE(entering == leaving);
      for (const auto& [unused, count] : entering) REQUIRE(count == most);
      if (entering.empty()) continue;
      if (is_power_of_two) REQUIRE(static_cast<int>(entering.size()) == shape.hosts);
      if (shape.per_host > 1) REQUIRE(t >= last_exchange + 2);
      last_exchange = t;
    }
    REQUIRE((last_exchange >= 0) == (shape.hosts > 1));
  }
}

TEST_CASE("weights of hierarchical_one_peer are positive, rows sum to 1, columns on average") {
  for (const HostShape& shape : shapes()) {
    INFO(shape.hosts << " hosts of " << shape.per_host << ", links " << shape.links);
    const Schedule schedule = shape.schedule();
    const auto n = static_cast<std::size_t>(shape.workers());
    Values sums(n);
    for (std::int64_t t = 0; t < schedule.period(); ++t) {
      check_graph(schedule.at(t));
      Values columns(n);
      for (std::size_t i = 0; i < n; ++i) {
        const MixingRow row = mixing_row(schedule.at(t), static_cast<int>(i));
        double sum = row.self;
        columns[i] += row.self;
        REQUIRE(row.self >= 0);
        for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
          REQUIRE(row.weights[k] > 0);
          sum += row.weights[k];
          columns[static_cast<std::size_t>(row.neighbors[k])] += row.weights[k];
        }
        REQUIRE(std::abs(sum - 1) < rounding);
      }
      const bool exchanges = schedule.at(t).name() == "between hosts";
      for (std::size_t j = 0; j < n; ++j) {
        if (exchanges || t == 0) REQUIRE(std::abs(columns[j] - 1) < rounding);
        sums[j] += columns[j];
      }
    }
    for (const double sum : sums) {
      REQUIRE(std::abs(sum / static_cast<double>(schedule.period()) - 1) < rounding);
    }
  }
}

TEST_CASE("weights of hierarchical_one_peer are those of its description") {
  // v = 1/2, m = 4: w = min(2, 7/8), and 4/7 for the representative within its host.
  const Schedule four = HostShape{4, 4, 1}.schedule();
  CHECK(mixing_row(four.at(0), 1).weights == Values{0.25, 0.25, 0.25});
  const MixingRow across = mixing_row(four.at(1), 0);
  CHECK(across.neighbors == std::vector<int>{4});
  CHECK(across.weights == Values{0.875});
  CHECK(mixing_row(four.at(1), 1).neighbors.empty());
  const MixingRow inside = mixing_row(four.at(2), 1);
  CHECK(std::abs(inside.weights[0] - 4.0 / 7) < rounding);
  CHECK(std::abs(inside.weights[1] - 1.0 / 7) < rounding);
  CHECK(std::abs(inside.self - 1.0 / 7) < rounding);
  const Spectrum product = spectrum(four);
  CHECK(product.doubly_stochastic);
  CHECK(product.gap == 1);
  CHECK(product.exact_after == 5);
  CHECK(spectrum(HostShape{5, 3, 1}.schedule()).exact_after == cycle_of(5, 3));
  // As many links as workers: J/m within hosts, and columns of sum 1 in every round.
  const Schedule all = HostShape{4, 4, 4}.schedule();
  CHECK(mixing_row(all.at(1), 3).weights == Values{0.5});
  CHECK(mixing_row(all.at(2), 1).weights == Values{0.25, 0.25, 0.25});
}

TEST_CASE("hierarchical_one_peer follows hosts whose ranks are not in order") {
  const std::vector<int> hosts = {9, 4, 9, 4, 7, 7, 2, 2};
  const Schedule schedule = schedule::hierarchical_one_peer(hosts).make(8);
  CHECK(schedule.at(0).in_neighbors(0) == std::vector<int>{2});
  CHECK(schedule.at(0).in_neighbors(4) == std::vector<int>{5});
  for (std::int64_t t = 0; t < schedule.period(); ++t) {
    for (int i = 0; i < 8; ++i) {
      for (const int j : schedule.at(t).in_neighbors(i)) {
        const bool same = hosts[static_cast<std::size_t>(i)] == hosts[static_cast<std::size_t>(j)];
        CHECK(same == (schedule.at(t).name() == "within hosts"));
      }
    }
  }
  Values x = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int t = 0; t < 5; ++t) x = after_round(schedule.at(t), x);
  for (const double value : x) CHECK(std::abs(value - 4.5) < rounding);
  const TopologyRule named = topology_on_hosts("hierarchical-one-peer", hosts);
  CHECK(named.make(8).at(0).in_neighbors(0) == std::vector<int>{2});
  CHECK(topology_on_hosts("hierarchical_one_peer", {3, 3, 3, 3}).make(4).at(0).in_degree(0) == 3);
  CHECK(topology_on_hosts("ring", hosts).make(8).at(0).in_neighbors(0) == std::vector<int>{1, 7});
}

TEST_CASE("survivors of missing workers agree as long as partners have a place in common") {
  const std::uint64_t seed = test_seed(31);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 20; ++trial) {
    const HostShape shape{2 + static_cast<int>(rng.below(4)), 2 + static_cast<int>(rng.below(5)),
                          1};
    // One place lives on all hosts. In every fourth trial no other place does.
    const double share = trial % 4 == 0 ? 1 : rng.uniform();
    const int common = static_cast<int>(rng.below(static_cast<std::uint64_t>(shape.per_host)));
    std::set<int> dead;
    Values x;
    for (int i = 0; i < shape.workers(); ++i) {
      if (i % shape.per_host != common && rng.uniform() < share) dead.insert(i);
      x.push_back(rng.uniform());
    }
    INFO(shape.hosts << " hosts of " << shape.per_host << ", " << dead.size() << " missing");
    const Schedule schedule = shape.schedule();
    double before = spread(x, dead);
    for (std::int64_t t = 0; t < 200 * schedule.period() && before > 1e-6; ++t) {
      x = after_round(schedule.at(t), x, dead);
      const double now = spread(x, dead);
      REQUIRE(now <= before + rounding);
      before = now;
    }
    CHECK(before <= 1e-6);
  }
}

TEST_CASE("a missing worker costs the exchange rounds that it would represent its host in") {
  const HostShape shape{2, 4, 1};
  const Schedule schedule = shape.schedule();
  const int cycle = cycle_of(2, 4), dead = 2;
  int exact = 0;
  for (std::int64_t first = 0; first < schedule.period(); first += cycle) {
    Values x = {0, 0, 0, 0, 1, 1, 1, 1};
    for (int t = 0; t < cycle; ++t) x = after_round(schedule.at(first + t), x, {dead});
    // The partner's host loses nothing when the exchange takes place.
    exact += std::abs(x[4] - 0.5) < rounding ? 1 : 0;
  }
  CHECK(exact == 3);
}

TEST_CASE("hosts of different sizes are refused with what to do") {
  CHECK_THROWS_WITH(schedule::hierarchical_one_peer(4).make(10),
                    Contains("10 workers in hosts of 4 leave 2") &&
                        Contains("start 8 or 12 workers, or choose hierarchical"));
  CHECK_THROWS_WITH(schedule::hierarchical_one_peer({0, 0, 0, 3, 3}).make(5),
                    Contains("host of worker 0 has 3 workers, that of worker 3 has 2") &&
                        Contains("choose hierarchical"));
  CHECK_THROWS_WITH(schedule::hierarchical_one_peer({0, 0, 2, 2}).make(5),
                    Contains("made for 4 workers, this run has 5"));
  CHECK_THROWS_WITH(schedule::hierarchical_one_peer(4, 0), Contains("0 links"));
  CHECK_THROWS_WITH(schedule::hierarchical_one_peer(-1), Contains("-1 workers a host"));
  CHECK_THROWS_WITH(schedule::hierarchical_one_peer(std::vector<int>{}), Contains("no workers"));
  CHECK_THROWS_WITH(schedule::hierarchical_one_peer(10'000).make(10'000), Contains("at most 4096"));
}

TEST_CASE("a file gives the workers per host and links of hierarchical_one_peer") {
  const TopologyRule rule = parse_topology(
      "schedule = \"hierarchical_one_peer\"\nworkers_per_host = 3\nlinks = 2", "a.toml");
  const Schedule schedule = rule.make(6);
  CHECK(schedule.period() == 9);
  int readers = 0;
  for (int i = 0; i < 6; ++i) readers += schedule.at(1).in_degree(i);
  CHECK(readers == 4);
  CHECK_THROWS_WITH(rule.make(7), Contains("7 workers in hosts of 3"));
  CHECK_THROWS_WITH(parse_topology("schedule = \"hierarchical_one_peer\"\nhosts = 3", "a.toml"),
                    Contains("hosts"));
}

TEST_CASE("sites come to the exact average with one payload in and out of each in H rounds") {
  for (const int every : {3, 5, 50}) {
    for (const HostShape& shape : shapes()) {
      if (shape.hosts > 8 || shape.per_host > 4 || shape.links > shape.per_host) continue;
      INFO(shape.hosts << " sites of " << shape.per_host << ", links " << shape.links << ", every "
                       << every);
      const Schedule schedule =
          schedule::sites(every, shape.per_host, shape.links).make(shape.workers());
      const int exchanges = base2_rounds(shape.hosts);
      const int cycle = std::max(1, exchanges * every);
      REQUIRE(schedule.period() % cycle == 0);
      Values x(static_cast<std::size_t>(shape.workers()));
      x.back() = 1;
      for (int t = 0; t < cycle; ++t) {
        const Topology topology = schedule.at(t);
        int across = 0;
        for (int i = 0; i < shape.workers(); ++i) {
          for (const int j : topology.in_neighbors(i))
            across += i / shape.per_host != j / shape.per_host ? 1 : 0;
        }
        // Rounds come in groups of `every`; the last but one crosses (the last, with one worker).
        const bool crosses = shape.hosts > 1 && t % every == every - (shape.per_host == 1 ? 1 : 2);
        REQUIRE(across <= (crosses ? shape.hosts * shape.links : 0));
        if (crosses) REQUIRE(across > 0);
        x = after_round(topology, x);
      }
      // One worker without others keeps what it has.
      for (const double value : x) REQUIRE(std::abs(value - 1.0 / shape.workers()) < rounding);
    }
  }
}

TEST_CASE("each round says whether its edges are within sites or between them") {
  using Edges = HostEdges::Kind;
  for (const int per_site : {1, 2, 3}) {
    const Schedule schedule = schedule::sites(5, per_site).make(6);
    for (std::int64_t round = 0; round < schedule.period(); ++round) {
      const bool between = round % 5 == (per_site == 1 ? 4 : 3);
      CHECK(host_edges_of(schedule.at(round)) == (between ? Edges::between : Edges::within));
    }
  }
  CHECK(host_edges_of(schedule::sites().make(4).at(48)) == Edges::within);  // one site
  CHECK(host_edges_of(schedule::hierarchical_one_peer(2).make(4).at(1)) == Edges::between);
  CHECK(host_edges_of(graph::hierarchical(stencil::ring(), 2).make(4).at(0)) == Edges::anywhere);
  CHECK(host_edges_of(stencil::ring().make(4).at(0)) == Edges::anywhere);
}

TEST_CASE("sites are chosen by name, with the rounds between exchanges, or by a file") {
  CHECK(topology_by_name("sites").make(8).period() == 50 * 4);
  CHECK(topology_by_name("sites:20").make(8).period() == 20 * 4);
  CHECK(is_schedule_name("sites:20"));
  const Schedule on_hosts = topology_on_hosts("sites:7", {0, 1, 0, 1}).make(4);
  CHECK(on_hosts.period() == 7 * 2);
  CHECK(on_hosts.at(0).in_neighbors(0) == std::vector<int>{2});
  const TopologyRule file =
      parse_topology("schedule = \"sites\"\nevery = 10\nworkers_per_site = 3", "a.toml");
  CHECK(file.make(6).period() == 10 * 3);
  CHECK_THROWS_WITH(topology_by_name("sites:2"), Contains("at least 3 are required"));
  CHECK_THROWS_WITH(topology_by_name("sites:x"), Contains("is not a number of rounds"));
  CHECK_THROWS_WITH(topology_on_hosts("sites", {0, 1, 1}).make(3),
                    Contains("the same number of workers"));
}
