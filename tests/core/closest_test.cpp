#include "core/registry.hpp"

#include "support/catch.hpp"

using namespace fast;

namespace {
const std::vector<std::string_view> known = {"ring",      "directed_ring", "torus2d",
                                             "hypercube", "exponential",   "one_peer_exponential"};
}

TEST_CASE("a misspelled name has the closest known name as its suggestion") {
  CHECK(closest("rign", known) == "ring");
  CHECK(closest("hypercub", known) == "hypercube");
  CHECK(closest("Torus2D", known) == "torus2d");
  CHECK(closest("directed-rnig", known) == "directed_ring");
  CHECK(did_you_mean("torus2", known) == "; did you mean \"torus2d\"?");
}

TEST_CASE("the beginning of a name is enough") {
  CHECK(closest("expo", known) == "exponential");
  CHECK(closest("one-peer", known) == "one_peer_exponential");
}

TEST_CASE("a name that is like none has no suggestion") {
  CHECK(!closest("klein", known));
  CHECK(!closest("", known));
  CHECK(!closest("xy", known));
  CHECK(!closest(std::string(100'000, 'r'), known));
  CHECK(did_you_mean("klein", known).empty());
}
