#include "worker/scenarios/on_ranks.hpp"

using namespace fast;

TEST_CASE("every scenario of codecs holds on ranks") {
  testing::hold_on_ranks(testing::scenarios_of_codecs());
}
