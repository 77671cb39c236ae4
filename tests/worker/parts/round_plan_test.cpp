#include "worker/round_plan.hpp"

#include <fast/topology/schedules.hpp>
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

TEST_CASE("a changed schedule holds from its round on; earlier rounds stay as they were") {
  RoundPlan plan(stencil::ring().make(6), 0, WeightRule::automatic, false, false);
  const auto before = plan.at(4)->edges.sources;
  plan.change(stencil::complete().make(6), 5, WeightRule::automatic, false);
  CHECK(plan.at(4)->edges.sources == before);
  CHECK(plan.at(5)->edges.sources == std::vector<int>{1, 2, 3, 4, 5});
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
