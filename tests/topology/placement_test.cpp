#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <numeric>

#include "support/catch.hpp"
#include "topology/graph_checks.hpp"
#include "topology/hosts.hpp"
#include "topology/placement.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {
std::vector<int> hosts_of(int ranks, int hosts, bool round_robin) {
  std::vector<int> result;
  for (int r = 0; r < ranks; ++r) {
    result.push_back(round_robin ? r % hosts : r / (ranks / hosts));
  }
  return result;
}

Placement checked(const Topology& topology, const std::vector<int>& hosts) {
  const Placement found = place(topology, hosts);
  std::vector<int> sorted = found.worker_of_rank, all(hosts.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  CHECK(found.cut_after <= found.cut_before);
  const Schedule schedule = placed(topology, found.worker_of_rank);
  check_graph(schedule.at(0));
  std::int64_t cut = 0;
  for (int r = 0; r < topology.workers(); ++r) {
    for (const int other : schedule.at(0).in_neighbors(r)) {
      cut += hosts[static_cast<std::size_t>(r)] != hosts[static_cast<std::size_t>(other)] ? 1 : 0;
    }
  }
  CHECK(cut == found.cut_after);
  return found;
}
}  // namespace

TEST_CASE("a torus of four hosts is laid in square blocks") {
  const Topology torus = stencil::torus2d({4, 4}).make(16).at(0);
  for (const bool round_robin : {false, true}) {
    const Placement found = checked(torus, hosts_of(16, 4, round_robin));
    CHECK(found.edges == 64);
    CHECK(found.cut_after == 32);  // each block of 2x2 has 8 edges to other hosts
  }
}

TEST_CASE("a ring keeps rank order when hosts hold consecutive ranks, and is sorted otherwise") {
  const Topology ring = stencil::ring().make(8).at(0);
  const Placement in_order = checked(ring, hosts_of(8, 2, false));
  CHECK(in_order.worker_of_rank == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  const Placement mixed = checked(ring, hosts_of(8, 2, true));
  CHECK(mixed.cut_before == 16);
  CHECK(mixed.cut_after == 4);
}

TEST_CASE("hosts of unequal size and open grids are placed too") {
  checked(stencil::grid2d({5, 4}).make(20).at(0),
          {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0});
  checked(stencil::torus3d({4, 4, 4}).make(64).at(0), hosts_of(64, 8, true));
  checked(stencil::complete().make(6).at(0), hosts_of(6, 3, true));
  checked(stencil::ring().make(1).at(0), {5});
}

TEST_CASE("placed weights stay with their edges") {
  const Schedule base = schedule::base(1).make(6);
  const Schedule moved = placed(base, {5, 4, 3, 2, 1, 0});
  CHECK(moved.period() == base.period());
  for (std::int64_t t = 0; t < base.period(); ++t) {
    CHECK(moved.at(t).given_self_weight(5) == base.at(t).given_self_weight(0));
    CHECK(moved.at(t).given_weights(5) == base.at(t).given_weights(0));
  }
  CHECK_THROWS_WITH(placed(base, {0, 0, 1, 2, 3, 4}), Contains("rank 1 takes place 0"));
  CHECK_THROWS_WITH(place(base.at(0), {0}), Contains("hosts of 1 ranks"));
}

// Ranks of two hosts in turn, and a file whose sites are workers 0, 1 and workers 2, 3.
TEST_CASE("placed rounds are within sites or between them, as before") {
  const Schedule sites = schedule::sites(4, 2).make(4);
  const Placement found = place(sites, hosts_of(4, 2, true));
  REQUIRE(found.cut_after < found.cut_before);
  const Schedule moved = placed(sites, found.worker_of_rank);
  for (std::int64_t t = 0; t < sites.period(); ++t) {
    INFO("round " << t);
    CHECK(host_edges_of(moved.at(t)) ==
          (t % 4 == 2 ? HostEdges::Kind::between : HostEdges::Kind::within));
  }
  const Schedule ring = placed(stencil::ring().make(4), {0, 2, 1, 3});
  CHECK(host_edges_of(ring.at(0)) == HostEdges::Kind::anywhere);
}
