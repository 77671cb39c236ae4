#include <array>
#include <cmath>
#include <fast/core/random.hpp>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("the generator is xoshiro256** seeded by SplitMix64") {
  // First SplitMix64 outputs of seed 0, from the algorithm's published reference.
  Rng rng(0);
  CHECK(rng.state()[0] == 0xe220a8397b1dcdafULL);
  CHECK(rng.state()[1] == 0x6e789e6aa1b965f4ULL);
  const std::uint64_t s1 = rng.state()[1];
  const std::uint64_t x5 = s1 * 5;
  CHECK(rng() == ((x5 << 7) | (x5 >> 57)) * 9);
}

TEST_CASE("uniform, normal and below have their moments and bounds") {
  Rng rng(42);
  double sum = 0, squares = 0, uniform = 0;
  constexpr int count = 200000;
  std::array<int, 7> histogram{};
  for (int i = 0; i < count; ++i) {
    const double z = rng.normal();
    sum += z;
    squares += z * z;
    const double u = rng.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    uniform += u;
    ++histogram.at(rng.below(7));
  }
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(squares / count == Approx(1).margin(0.02));
  CHECK(uniform / count == Approx(0.5).margin(0.005));
  for (const int bin : histogram) CHECK(bin == Approx(count / 7.0).epsilon(0.03));
}

TEST_CASE("derived seeds differ in every argument") {
  CHECK(mix_seed(1) != mix_seed(2));
  CHECK(mix_seed(1, 2, 3) != mix_seed(1, 3, 2));
  CHECK(mix_seed(1, 2) != mix_seed(2, 1));
}
