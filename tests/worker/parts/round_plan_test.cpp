#include "worker/round_plan.hpp"

#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"

using namespace fast;
using worker::RoundPlan;

TEST_CASE("a plan's rows and edges are the topology's, round by round") {
  const Schedule schedule = schedule::one_peer_exponential().make(8);
  RoundPlan plan(schedule, 3, WeightRule::automatic, false, false);
  for (std::int64_t round = 0; round < 7; ++round) {
    const Topology topology = schedule.at(round);
    const auto planned = plan.at(round);
    CHECK(planned->edges.sources == topology.in_neighbors(3));
    CHECK(planned->edges.destinations == topology.out_neighbors(3));
    CHECK(planned->row.weights == mixing_row(topology, 3, WeightRule::automatic, false).weights);
    CHECK(plan.at(round + schedule.period()) == planned);  // remembered by its place
  }
}

TEST_CASE("a plan knows which rounds are between sites, also after a change") {
  RoundPlan plan(schedule::sites(4, 2).make(4), 0, WeightRule::automatic, false, false);
  for (const int round : {0, 1, 3}) CHECK_FALSE(plan.at(round)->between_sites);
  CHECK(plan.at(2)->between_sites);
  CHECK(plan.at(6)->between_sites);
  plan.change(stencil::ring().make(4), 4, WeightRule::automatic, false);
  CHECK(plan.at(2)->between_sites);
  CHECK_FALSE(plan.at(6)->between_sites);
}

TEST_CASE("a changed schedule holds from its round on; earlier rounds stay as they were") {
  RoundPlan plan(stencil::ring().make(6), 0, WeightRule::automatic, false, false);
  const auto before = plan.at(4)->edges.sources;
  plan.change(stencil::complete().make(6), 5, WeightRule::automatic, false);
  CHECK(plan.at(4)->edges.sources == before);
  CHECK(plan.at(5)->edges.sources == std::vector<int>{1, 2, 3, 4, 5});
}

TEST_CASE("a combination that is left out moves a change that has not begun, and no other") {
  const std::vector<int> all{1, 2, 3, 4, 5};
  RoundPlan plan(stencil::ring().make(6), 0, WeightRule::automatic, false, false);
  plan.change(stencil::complete().make(6), 5, WeightRule::automatic, false);
  plan.skip_to(5);  // in the place of 4, of the ring
  CHECK(plan.at(5)->edges.sources == std::vector<int>{1, 5});
  CHECK(plan.at(6)->edges.sources == all);
  plan.skip_to(7);  // in the place of 6, of the complete topology
  CHECK(plan.at(6)->edges.sources == all);
  CHECK(plan.at(7)->edges.sources == all);
}

TEST_CASE("what a worker keeps and gives away of its mass sums to 1") {
  for (int worker = 0; worker < 5; ++worker) {
    RoundPlan plan(stencil::ring(true).make(5), worker, WeightRule::uniform_columns, false, true);
    const auto round = plan.at(0);
    double sum = round->row.self;
    REQUIRE(round->shares.size() == round->edges.destinations.size());
    for (const double share : round->shares) sum += share;
    CHECK(sum == Approx(1));
  }
}
