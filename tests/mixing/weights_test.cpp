#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>

#include "mixing/needs.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using Catch::Matchers::Contains;
using Vector = std::vector<double>;

namespace {
Vector times(const Vector& matrix, const Vector& x) {
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += matrix[i * x.size() + j] * x[j];
  }
  return y;
}

Vector ranks(int workers) {
  Vector x;
  for (int r = 0; r < workers; ++r) x.push_back(r);
  return x;
}

Vector after_one_round(const TopologyRule& rule, int workers, WeightRule weights) {
  return times(mixing_matrix(rule.make(workers).at(0), weights), ranks(workers));
}

Topology star(int workers, int center) {
  std::vector<std::vector<int>> in(static_cast<std::size_t>(workers));
  for (int r = 0; r < workers; ++r) {
    if (r == center) continue;
    in[static_cast<std::size_t>(r)].push_back(center);
    in[static_cast<std::size_t>(center)].push_back(r);
  }
  return {"star", in};
}

Topology random_undirected(Rng& rng, int workers) {
  std::vector<std::vector<int>> in(static_cast<std::size_t>(workers));
  const double density = rng.uniform();
  for (int i = 0; i < workers; ++i) {
    for (int j = 0; j < i; ++j) {
      if (rng.uniform() >= density) continue;
      in[static_cast<std::size_t>(i)].push_back(j);
      in[static_cast<std::size_t>(j)].push_back(i);
    }
  }
  return {"random", in};
}

// Largest |sum - 1| over rows, over columns, and largest asymmetry.
struct Sums {
  double rows = 0, columns = 0, asymmetry = 0, least = 1;
};
Sums sums_of(const Vector& matrix, int workers) {
  Sums found;
  const auto n = static_cast<std::size_t>(workers);
  for (std::size_t i = 0; i < n; ++i) {
    double row = 0, column = 0;
    for (std::size_t j = 0; j < n; ++j) {
      row += matrix[i * n + j];
      column += matrix[j * n + i];
      found.asymmetry = std::max(found.asymmetry, std::abs(matrix[i * n + j] - matrix[j * n + i]));
      found.least = std::min(found.least, matrix[i * n + j]);
    }
    found.rows = std::max(found.rows, std::abs(row - 1));
    found.columns = std::max(found.columns, std::abs(column - 1));
  }
  return found;
}
}  // namespace

TEST_CASE("one round on rings is the mean of those read and one's own") {
  for (const int n : {3, 4, 5, 8}) {
    const Vector one_way = after_one_round(stencil::ring(true), n, WeightRule::automatic);
    const Vector two_way = after_one_round(stencil::ring(), n, WeightRule::automatic);
    for (int r = 0; r < n; ++r) {
      const int left = (r + n - 1) % n, right = (r + 1) % n;
      CHECK(one_way[static_cast<std::size_t>(r)] == (r + left) / 2.0);
      CHECK(two_way[static_cast<std::size_t>(r)] == Approx((left + r + right) / 3.0));
    }
  }
}

TEST_CASE("a star's center takes everybody's mean, a leaf the mean with the center") {
  const int n = 6, center = 2;
  const Topology graph = star(n, center);
  const Vector x = times(mixing_matrix(graph, WeightRule::uniform_rows), ranks(n));
  for (int r = 0; r < n; ++r) {
    CHECK(x[static_cast<std::size_t>(r)] ==
          Approx(r == center ? (n - 1) / 2.0 : (r + center) / 2.0));
  }
}

TEST_CASE("a self weight of zero and one source of weight one move values round the ring") {
  const int n = 5;
  std::vector<std::vector<int>> in;
  for (int r = 0; r < n; ++r) in.push_back({(r + n - 1) % n});
  const Topology shift("shift", in, std::vector<Vector>(n, Vector{1.0}));
  const Vector x = times(mixing_matrix(shift), ranks(n));
  for (int r = 0; r < n; ++r) CHECK(x[static_cast<std::size_t>(r)] == (r + n - 1) % n);
}

TEST_CASE("the exponential graph takes the mean of those a power of two before") {
  for (const int n : {4, 8, 12, 13}) {
    const int tau = static_cast<int>(std::ceil(std::log2(n)));
    const Vector x = after_one_round(stencil::exponential(), n, WeightRule::uniform_rows);
    for (int r = 0; r < n; ++r) {
      int sum = r;
      for (int hop = 1; hop < n; hop *= 2) sum += (r + n - hop) % n;
      CHECK(x[static_cast<std::size_t>(r)] == Approx(static_cast<double>(sum) / (tau + 1)));
    }
  }
}

TEST_CASE("one period of one-peer exponential is the exact average for powers of two") {
  const auto product_error = [](int n) {
    const Schedule schedule = schedule::one_peer_exponential().make(n);
    double largest = 0;
    for (int column = 0; column < n; ++column) {
      Vector x(static_cast<std::size_t>(n));
      x[static_cast<std::size_t>(column)] = 1;
      for (std::int64_t t = 0; t < schedule.period(); ++t) {
        x = times(mixing_matrix(schedule.at(t)), x);
      }
      for (const double entry : x) largest = std::max(largest, std::abs(entry - 1.0 / n));
    }
    return largest;
  };
  for (const int n : {2, 4, 8, 16, 32, 64}) CHECK(product_error(n) == 0);
  CHECK(product_error(12) == Approx(0.0417).margin(5e-5));
}

TEST_CASE("over all of EquiDyn's hops the squared disagreement shrinks to the known share") {
  for (const int n : {2, 3, 10, 17}) {
    const Schedule schedule = schedule::equidyn(5).make(n);
    Vector x(static_cast<std::size_t>(n), -1.0 / n);
    x[0] += 1;
    std::vector<bool> seen(static_cast<std::size_t>(n));
    double sum = 0;
    int hops = 0;
    for (std::int64_t t = 0; t < 1000 && hops < n - 1; ++t) {
      const std::size_t read = static_cast<std::size_t>(schedule.at(t).in_neighbors(0).front());
      if (seen[read]) continue;
      seen[read] = true;
      ++hops;
      for (const double value : times(mixing_matrix(schedule.at(t)), x)) sum += value * value;
    }
    CHECK(hops == n - 1);
    const double start = 1 - 1.0 / n;
    CHECK(sum / (n - 1) / start == Approx((n - 2) / (2.0 * (n - 1))).margin(1e-12));
  }
}

TEST_CASE("one period of Base-(k+1) is the exact average for every number of workers") {
  for (const int k : {1, 2, 3}) {
    for (int n = 1; n <= 64; ++n) {
      INFO("k = " << k << ", N = " << n);
      const Schedule schedule = schedule::base(k).make(n);
      double largest = 0;
      for (int column = 0; column < n; ++column) {
        Vector x(static_cast<std::size_t>(n));
        x[static_cast<std::size_t>(column)] = 1;
        for (std::int64_t t = 0; t < schedule.period(); ++t) {
          Vector y;
          for (int i = 0; i < n; ++i) {
            const MixingRow row = mixing_row(schedule.at(t), i);
            REQUIRE(row.neighbors.size() <= static_cast<std::size_t>(k));
            double sum = row.self * x[static_cast<std::size_t>(i)];
            for (std::size_t j = 0; j < row.neighbors.size(); ++j) {
              sum += row.weights[j] * x[static_cast<std::size_t>(row.neighbors[j])];
            }
            y.push_back(sum);
          }
          x = y;
        }
        for (const double entry : x) largest = std::max(largest, std::abs(entry - 1.0 / n));
      }
      CHECK(largest < 1e-12);
      const Sums sums = sums_of(mixing_matrix(schedule.at(0)), n);
      CHECK(sums.columns < 1e-12);
      CHECK(sums.asymmetry < 1e-15);
    }
  }
}

TEST_CASE("random graphs' weights have the sums their rule promises") {
  const std::uint64_t seed = test_seed(3);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 25; ++trial) {
    const int n = 1 + static_cast<int>(rng.below(200));
    const Topology graph = random_undirected(rng, n);
    const bool lazy = rng.below(2) == 1;
    const Sums metropolis = sums_of(mixing_matrix(graph, WeightRule::metropolis, lazy), n);
    CHECK(metropolis.rows < 1e-12);
    CHECK(metropolis.columns < 1e-12);
    CHECK(metropolis.asymmetry == 0);
    CHECK(metropolis.least >= 0);
    CHECK(sums_of(mixing_matrix(graph, WeightRule::uniform_rows, lazy), n).rows < 1e-12);
    CHECK(sums_of(mixing_matrix(graph, WeightRule::uniform_columns, lazy), n).columns < 1e-12);
  }
}

TEST_CASE("rows are O(degree) and lie along ascending neighbors") {
  const Topology torus = stencil::torus2d().make(1'000'000).at(0);
  const MixingRow row = mixing_row(torus, 999'999);
  CHECK(row.neighbors == torus.in_neighbors(999'999));
  CHECK(row.weights == Vector(4, 0.2));
  CHECK(row.self == Approx(0.2));
  const MixingRow lazy = mixing_row(torus, 0, WeightRule::metropolis, true);
  CHECK(lazy.self == Approx(0.6));
  CHECK(lazy.weights == Vector(4, 0.1));
}

TEST_CASE("automatic weights are the given ones, else what fits the graph") {
  const Topology given("given", {{1}, {0}}, {{0.25}, {0.25}});
  CHECK(mixing_row(given, 0).self == 0.75);
  CHECK(mixing_row(given, 0, WeightRule::metropolis).self == 0.5);
  CHECK(mixing_row(star(5, 0), 1).weights == Vector{0.2});
  CHECK(mixing_row(stencil::ring(true).make(3).at(0), 1).weights == Vector{0.5});
}

TEST_CASE("a rule that does not fit the graph says what would") {
  const Topology directed = stencil::ring(true).make(4).at(0);
  CHECK_THROWS_WITH(mixing_row(directed, 0, WeightRule::metropolis),
                    Contains("directed_ring is directed") && Contains("uniform_rows"));
  CHECK_THROWS_WITH(mixing_row(directed, 0, WeightRule::given), Contains("no weights of its own"));
  CHECK_THROWS_WITH(weight_rule_by_name("mean"),
                    Contains("no rule \"mean\"") && Contains("metropolis, uniform_rows"));
  for (const auto rule : {WeightRule::metropolis, WeightRule::given, WeightRule::automatic}) {
    CHECK(weight_rule_by_name(name(rule)) == rule);
  }
}

TEST_CASE("every name's weights are averages over random numbers of workers") {
  const std::uint64_t seed = test_seed(29);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (const TopologyName& name : topology_names()) {
    for (int trial = 0; trial < 4; ++trial) {
      int n = 1 + static_cast<int>(rng.below(200));
      if (name.name == "hypercube") n = 1 << rng.below(8);
      INFO(name.name << " " << n);
      const MixingCheck found = check_mixing(topology_by_name(name.name).make(n));
      CHECK(found.connected);
      CHECK(found.rows);
      // Those of hierarchical_one_peer, and of what is made of it, sum to 1 over a period.
      const bool over_a_period = name.name == "hierarchical_one_peer" ||
                                 name.name == "sharded_one_peer" || name.name == "sites";
      CHECK((found.columns || over_a_period));
      CHECK(found.columns_on_average);
      CHECK(found.nonnegative);
    }
  }
}

TEST_CASE("a check says which worker, which sum and what would mend it") {
  const MixingCheck rows = check_mixing(star(6, 2), WeightRule::uniform_rows);
  CHECK(rows.rows);
  CHECK_FALSE(rows.columns);
  CHECK_FALSE(rows.symmetric);
  REQUIRE(rows.findings.size() == 1);
  CHECK_THAT(rows.asymmetry, Contains("gives worker"));
  CHECK_THAT(rows.findings[0],
             Contains("worker 0 (its column) sum to 0.666667") && Contains("choose metropolis"));
  const MixingCheck columns = check_mixing(star(6, 2), WeightRule::uniform_columns);
  CHECK_FALSE(columns.rows);
  CHECK_THAT(columns.findings[0], Contains("worker 0's weights (its row) sum to 0.666667"));

  const Topology apart("apart", {{1}, {0}, {3}, {2}});
  CHECK_THAT(check_mixing(apart).findings.back(), Contains("never reach worker 2"));
  const Topology one_way("one way", {{}, {0}});
  CHECK_THAT(check_mixing(one_way).findings.back(), Contains("worker 1's values never reach"));
  CHECK(check_mixing(schedule::one_peer_exponential().make(12)).connected);
  // An edge of weight 0 joins nobody.
  const std::vector<Vector> weights = {{.5}, {.5, 0}, {0, .5}, {.5}};
  const MixingCheck joined = check_mixing(Topology("path", {{1}, {0, 2}, {1, 3}, {2}}, weights));
  CHECK_FALSE(joined.connected);
  CHECK_THAT(joined.findings.back(), Contains("never reach worker 2"));

  const Schedule directed = stencil::ring(true).make(4);
  CHECK_NOTHROW(require_mixing(directed, WeightRule::automatic, false, {true, true}, "atc"));
  CHECK_THROWS_WITH(
      require_mixing(directed, WeightRule::automatic, false, {true, true, true}, "d2"),
      Contains("d2: directed_ring does not fit: worker 0 gives worker 3 the weight 0.5"));
}

TEST_CASE("what an algorithm asks of the matrix is checked, and the error names the value") {
  const auto needs = [](const Schedule& schedule, bool lazy, const MixingNeeds& wanted) {
    require_mixing(schedule, WeightRule::automatic, lazy, wanted, "rule");
  };
  MixingNeeds positive{.columns = true, .symmetric = true};
  positive.eigenvalues_above = -1. / 3;
  const Schedule torus = stencil::torus2d().make(16);
  CHECK_THROWS_WITH(needs(torus, false, positive),
                    Contains("rule: torus 4x4 does not fit: the smallest eigenvalue of its weights "
                             "is -0.6, it must exceed -0.333333 by more than 1e-09; use lazy "
                             "weights"));
  CHECK_NOTHROW(needs(torus, true, positive));
  // Exactly -1/3 is not above it.
  CHECK_THROWS_WITH(needs(stencil::ring().make(8), false, positive),
                    Contains("is -0.3333333333333, it must exceed -0.333333 by more"));
  CHECK_NOTHROW(needs(star(8, 0), false, positive));
  CHECK_THROWS_WITH(needs(schedule::alternating_pairs().make(8), true, positive),
                    Contains("changes from round to round"));

  const MixingNeeds pairs{.columns = true, .pairs = true};
  CHECK_NOTHROW(needs(schedule::random_matchings().make(9), false, pairs));
  CHECK_THROWS_WITH(needs(torus, false, pairs),
                    Contains("worker 0 reads 4 workers with weight 0.2, required is 1"));
}

TEST_CASE("a topology's own wish decides what automatic weights are") {
  const Topology ring = stencil::ring().make(6).at(0);
  const Topology lazy = ring.with_weights(WeightRule::uniform_rows, true);
  CHECK(mixing_row(lazy, 0).self == Approx(2.0 / 3));
  CHECK(mixing_row(lazy, 0, WeightRule::metropolis).weights[0] == Approx(1.0 / 6));
  CHECK(mixing_row(Schedule(ring).with_weights(WeightRule::automatic, true).at(3), 1).self ==
        Approx(2.0 / 3));
}
