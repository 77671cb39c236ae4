// The scenarios of scenarios/, with workers that are threads.
#include "worker/scenarios/on_threads.hpp"

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("every scenario holds on threads") { testing::hold_on_threads(testing::scenarios()); }
