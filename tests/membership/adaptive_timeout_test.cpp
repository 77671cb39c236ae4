#include "membership/liveness.hpp"

#include <algorithm>
#include <fast/core/random.hpp>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using membership::AdaptiveTimeout;

namespace {

using Gaps = std::vector<std::uint64_t>;

void add(AdaptiveTimeout& window, std::uint64_t gap, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) window.add(gap);
}

/// By sorting: four times the longest of the latest 300 gaps but for one in 100, and for one at
/// least; from 10 to 100.
std::uint64_t threshold_of(const Gaps& all) {
  const std::size_t known = std::min<std::size_t>(all.size(), 300);
  Gaps latest(all.end() - static_cast<std::ptrdiff_t>(known), all.end());
  std::sort(latest.begin(), latest.end(), std::greater<>());
  return std::clamp<std::uint64_t>(4 * latest[std::max<std::size_t>(known / 100, 1)], 10, 100);
}

}  // namespace

TEST_CASE("a threshold requires fifty gaps") {
  AdaptiveTimeout window;
  add(window, 1, 49);
  CHECK_FALSE(window.has_enough());
  add(window, 1, 1);
  CHECK(window.has_enough());
}

TEST_CASE("equal gaps have four times the gap as threshold, from 1 s to 10 s") {
  for (std::uint64_t gap = 1; gap < 200; ++gap) {
    AdaptiveTimeout window;
    add(window, gap, 60);
    CHECK(window.threshold() == std::clamp<std::uint64_t>(4 * gap, 10, 100));
  }
}

TEST_CASE("the threshold of random gaps is that of the sorted gaps, with each further gap") {
  const std::uint64_t seed = test_seed(17);
  INFO("seed " << seed);
  for (const std::uint64_t longest : {2, 5, 12, 40}) {
    Rng rng(mix_seed(seed, longest));
    AdaptiveTimeout window;
    Gaps all;
    for (int i = 0; i < 1000; ++i) {
      all.push_back(1 + rng.below(longest));
      window.add(all.back());
      if (window.has_enough()) REQUIRE(window.threshold() == threshold_of(all));
    }
  }
}

TEST_CASE("gaps that become longer raise the threshold, and shorter ones lower it again") {
  AdaptiveTimeout window;
  add(window, 1, 300);
  add(window, 8, 3);  // one in 100 may be longer
  CHECK(window.threshold() == 10);
  add(window, 8, 1);
  CHECK(window.threshold() == 32);
  add(window, 1, 296);  // four of the 300 gaps are still long
  CHECK(window.threshold() == 32);
  add(window, 1, 1);
  CHECK(window.threshold() == 10);
}

TEST_CASE("one long gap in twenty counts, though median and deviation do not notice it") {
  AdaptiveTimeout window;
  for (int i = 0; i < 15; ++i) {
    add(window, 1, 19);
    add(window, 12, 1);
  }
  CHECK(window.threshold() == 48);
}

TEST_CASE("pauses do not change the threshold, however long, unless there are many") {
  AdaptiveTimeout window;
  add(window, 1, 50);
  add(window, 5000, 1);
  CHECK(window.threshold() == 10);
  add(window, 1, 300);
  add(window, 5000, 3);
  CHECK(window.threshold() == 10);
  add(window, 5000, 1);
  CHECK(window.threshold() == 100);
  add(window, 1, 300);
  CHECK(window.threshold() == 10);
}
