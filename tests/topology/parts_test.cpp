#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/topology/topology.hpp>

#include "support/catch.hpp"

using namespace fast;

namespace {

std::vector<int> vector_of(std::initializer_list<int> values) { return values; }

}  // namespace

TEST_CASE("without dead workers a ring is one part, without two that are apart it is two") {
  const Schedule ring = stencil::ring().make(6);
  CHECK(living_parts(ring, {}).size() == 1);
  CHECK(living_parts(ring, {2}).size() == 1);
  CHECK(living_parts(ring, {2, 3}) == std::vector<std::vector<int>>{vector_of({0, 1, 4, 5})});
  const auto parts = living_parts(ring, {0, 3});
  CHECK(parts == std::vector<std::vector<int>>{vector_of({1, 2}), vector_of({4, 5})});
  CHECK(describe_parts(parts) == "{1, 2} and {4, 5}");
  CHECK(living_parts(graph::star().make(5), {0}).size() == 4);
}

TEST_CASE("the largest part comes first") {
  const auto parts = living_parts(stencil::ring().make(7), {1, 3});
  CHECK(parts == std::vector<std::vector<int>>{vector_of({0, 4, 5, 6}), vector_of({2})});
}

TEST_CASE("edges of any round hold a part together") {
  const Schedule one_peer = schedule::one_peer_exponential().make(4);
  CHECK(living_parts(one_peer, {0, 2}) == std::vector<std::vector<int>>{vector_of({1, 3})});
}

// Sites read each other in few rounds: with 3 sites, after 3 exchanges at the latest.
TEST_CASE("edges of late rounds hold a part together") {
  for (const int every : {3, 50, 100, 300}) {
    INFO("every " << every);
    const Schedule single = schedule::sites(every, {0, 1, 2}).make(3);
    CHECK(living_parts(single, {}).size() == 1);
    CHECK(living_parts(single, {1}) == std::vector<std::vector<int>>{vector_of({0, 2})});
    const Schedule pairs = schedule::sites(every, {0, 0, 1, 1, 2, 2, 3, 3}).make(8);
    CHECK(living_parts(pairs, {2}) ==
          std::vector<std::vector<int>>{vector_of({0, 1, 3, 4, 5, 6, 7})});
    CHECK(living_parts(pairs, {2, 3}) ==
          std::vector<std::vector<int>>{vector_of({0, 1, 4, 5, 6, 7})});
  }
}
