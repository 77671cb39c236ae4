#include "train/balance/shares.hpp"

#include <fast/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using train::Shares;
using train::Speed;

namespace {

using Batches = std::vector<std::size_t>;

Batches divided_batches(const std::vector<double>& speeds, std::size_t batch_size) {
  return Shares::in_proportion(speeds, batch_size).batches();
}

std::size_t sum_of_batches(const Batches& batches) {
  return std::accumulate(batches.begin(), batches.end(), std::size_t{0});
}

std::vector<Speed> known_speeds(const std::vector<double>& seconds_per_sample) {
  std::vector<Speed> speeds;
  for (const double seconds : seconds_per_sample) speeds.push_back({false, seconds});
  return speeds;
}

}  // namespace

TEST_CASE("batches are in proportion to speeds, by the largest remainder") {
  CHECK(divided_batches({4, 2, 1}, 7) == Batches{12, 6, 3});
  CHECK(divided_batches({4, 2, 1}, 64) == Batches{110, 55, 27});  // 109.71, 54.86, 27.43
  CHECK(divided_batches({1, 1, 1}, 5) == Batches{5, 5, 5});
  CHECK(divided_batches({2, 1, 1, 1, 1}, 1) == Batches{1, 1, 1, 1, 1});
  CHECK(divided_batches({3, 3, 3, 2}, 2) ==
        Batches{2, 2, 2, 2});  // 2.18 each, 1.45: the last rest is largest
  CHECK(divided_batches({1, 1, 2}, 3) == Batches{2, 2, 5});  // equal rests: the lowest first
}

TEST_CASE("no worker has less than one sample, and one that is away has none") {
  CHECK(divided_batches({1e9, 1, 1}, 10) == Batches{28, 1, 1});
  CHECK(divided_batches({8, 0, 8}, 10) == Batches{15, 0, 14});
  const Shares shares = Shares::in_proportion(std::vector<double>{8, 0, 8}, 10);
  CHECK(shares.is_away(1));
  CHECK(shares.of(1).batch_size == 1);
  CHECK(shares.of(2).before == 16);
  CHECK(shares.scale(0) == Approx(15 * 2 / 29.0));
}

TEST_CASE("whatever the speeds, all samples of a round are taken, each batch is near its part") {
  const std::uint64_t seed = test_seed(3);
  CAPTURE(seed);
  Rng rng(seed);
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t workers = 1 + rng.below(9), batch_size = 1 + rng.below(40);
    std::vector<double> speeds(workers);
    for (double& speed : speeds) speed = std::exp(3 * rng.uniform());
    const Batches batches = divided_batches(speeds, batch_size);
    CAPTURE(speeds, batch_size, batches);
    const std::size_t all = workers * batch_size;
    REQUIRE(sum_of_batches(batches) == all);
    REQUIRE(*std::min_element(batches.begin(), batches.end()) >= 1);
    const double speed_of_all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    const bool fits =
        *std::min_element(speeds.begin(), speeds.end()) / speed_of_all * static_cast<double>(all) >=
        1;
    double mean_scale = 0;
    std::size_t before = 0;
    const Shares shares(batches);
    for (std::size_t w = 0; w < workers; ++w) {
      const double part = speeds[w] / speed_of_all * static_cast<double>(all);
      if (fits) REQUIRE(std::abs(static_cast<double>(batches[w]) - part) < 1);
      REQUIRE(shares.of(static_cast<int>(w)).before == before);
      before += batches[w];
      mean_scale += shares.scale(static_cast<int>(w)) / static_cast<double>(workers);
    }
    REQUIRE(mean_scale == Approx(1));
  }
}

TEST_CASE("shares are read from their text if they fit the run") {
  const Shares shares(Batches{12, 0, 8});
  CHECK(shares.text() == "12,0,8");
  CHECK(Shares::from_text("12,0,8", 3, 7) == shares);
  for (const char* text : {"", "12", "12,1,9", "12,0,8,1", "12,x,8", "-1,22"})
    CHECK_FALSE(Shares::from_text(text, 3, 7));
  CHECK_FALSE(Shares::from_text("12,0,8", 3, 8));
}

TEST_CASE("shares change if rounds become shorter by more than 5 %") {
  const Shares even = Shares::even(2, 100);
  // The slower worker takes 100 t samples; with new shares, both take 200 t / (1 + t).
  CHECK(rebalanced(even, known_speeds({1, 1.10}), 100) == even);  // 0.952
  CHECK(rebalanced(even, known_speeds({1, 1.12}), 100).batches() == Batches{106, 94});
  const Shares balanced(Batches{120, 60});
  CHECK(rebalanced(balanced, known_speeds({1, 2}), 90) == balanced);
  CHECK(rebalanced(balanced, known_speeds({2, 1}), 90).batches() == Batches{60, 120});
}

TEST_CASE("a worker of unknown speed is taken for as fast as the others think") {
  const Shares now(Batches{120, 60, 30});
  CHECK(rebalanced(now, known_speeds({0, 0, 0}), 70) == now);
  CHECK(rebalanced(now, known_speeds({1, 0, 4}), 70) == now);
  // The third is as fast as the second now.
  CHECK(rebalanced(now, known_speeds({1, 0, 2}), 70).batches() == Batches{105, 53, 52});
}

TEST_CASE("the batches of workers that leave go to the others, and come back with them") {
  const Shares even = Shares::even(3, 10);
  std::vector<Speed> speeds = known_speeds({1, 1, 1});
  speeds[1] = {true, 0};
  const Shares without = rebalanced(even, speeds, 10);
  CHECK(without.batches() == Batches{15, 0, 14});
  CHECK(rebalanced(without, speeds, 10) == without);
  CHECK(rebalanced(without, known_speeds({1, 1, 1}), 10) == even);
}
