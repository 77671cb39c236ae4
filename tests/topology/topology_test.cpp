#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/topology.hpp>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology/graph_checks.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {
std::vector<std::vector<int>> random_lists(Rng& rng, int workers) {
  std::vector<std::vector<int>> in(static_cast<std::size_t>(workers));
  const double density = rng.uniform();
  for (int i = 0; i < workers; ++i) {
    for (int j = workers - 1; j >= 0; --j) {
      if (i != j && rng.uniform() < density) in[static_cast<std::size_t>(i)].push_back(j);
    }
  }
  return in;
}
}  // namespace

TEST_CASE("lists of neighbors are sorted and know who reads whom") {
  const Topology pairs("pairs", {{3, 1}, {0}, {1}, {2, 0}});
  CHECK(pairs.in_neighbors(0) == std::vector<int>{1, 3});
  CHECK(pairs.out_neighbors(0) == std::vector<int>{1, 3});
  CHECK(pairs.out_neighbors(1) == std::vector<int>{0, 2});
  CHECK_FALSE(pairs.is_symmetric());
  CHECK(Topology("edge", {{1}, {0}}).is_symmetric());
}

TEST_CASE("random lists of neighbors are reciprocal") {
  const std::uint64_t seed = test_seed(11);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 40; ++trial) {
    check_graph(Topology("random", random_lists(rng, 1 + static_cast<int>(rng.below(200)))));
  }
}

TEST_CASE("a list that cannot be says which worker and why") {
  CHECK_THROWS_WITH(Topology("g", std::vector<std::vector<int>>{{1}, {2}}),
                    Contains("worker 1 reads worker 2, there are 2 (0..1)"));
  CHECK_THROWS_WITH(Topology("g", std::vector<std::vector<int>>{{1}, {1}}),
                    Contains("worker 1 names itself"));
  CHECK_THROWS_WITH(Topology("g", std::vector<std::vector<int>>{{1, 1}, {0}}),
                    Contains("worker 0 names neighbor 1 twice"));
  CHECK_THROWS_WITH(Topology("g", std::vector<std::vector<int>>{}), Contains("no workers"));
  CHECK_THROWS_WITH(Topology("g", {{1}, {0}}).in_neighbors(2), Contains("asked for worker 2"));
}

TEST_CASE("given weights stay with their neighbors when lists are sorted") {
  const Topology g("g", {{2, 1}, {0}, {}}, {{0.25, 0.5}, {1}, {}});
  CHECK(g.given_weights(0) == std::vector<double>{0.5, 0.25});
  CHECK(g.given_self_weight(0) == 0.25);
  CHECK(g.given_self_weight(1) == 0);
  CHECK(g.given_self_weight(2) == 1);
}

TEST_CASE("weights that do not fit say which worker, which sum and what would mend it") {
  CHECK_THROWS_WITH(Topology("g", {{1}, {0}}, {{1.25}, {1}}),
                    Contains("worker 0's weights sum to 1.25") && Contains("lower them by 0.25"));
  CHECK_THROWS_WITH(Topology("g", {{1}, {0}}, {{-0.5}, {1}}), Contains("the weight -0.5"));
  CHECK_THROWS_WITH(Topology("g", {{1}, {0}}, {{NAN}, {1}}), Contains("the weight nan"));
  CHECK_THROWS_WITH(Topology("g", {{1}, {0}}, {{0.5, 0.5}, {1}}), Contains("2 weights"));
  CHECK_THROWS_WITH(Topology("g", {{1}, {0}}, {{0.5}}), Contains("2 workers, weights for 1"));
  CHECK_THROWS_WITH(Topology("g", {{1}, {0}}, {{0.5}, {0.5}}, {0.5, 0.25}),
                    Contains("worker 1's weights, its own included, sum to 0.75, required 1") &&
                        Contains("by 0.25"));
}

TEST_CASE("columns may sum to one instead of rows") {
  const Topology g("g", {{1}, {}}, {{0.75}, {}}, {1, 0.25});
  CHECK(g.given_self_weight(1) == 0.25);
}
