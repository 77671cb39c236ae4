#include "core/numbers.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <fast/core/deadline.hpp>
#include <fast/core/random.hpp>
#include <limits>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;

namespace {

/// Any bit pattern is a double: infinities, NaN and subnormal numbers are among them.
double any_double(Rng& rng) {
  if (rng.below(2) == 0) return std::ldexp(rng.uniform(-2, 2), static_cast<int>(rng.below(140)));
  return std::bit_cast<double>(rng());
}

/// Small numbers, and those near the ends of the range.
template <class Whole>
Whole any_whole(Rng& rng) {
  const auto offset = static_cast<Whole>(rng.below(5));
  switch (rng.below(4)) {
    case 0:
      return static_cast<Whole>(std::numeric_limits<Whole>::max() - offset);
    case 1:
      return static_cast<Whole>(std::numeric_limits<Whole>::min() + offset);
    case 2:
      return offset;
    default:
      return static_cast<Whole>(rng());
  }
}

/// As mathematics has it. 80 bits hold every integer of 64 bits.
template <class Whole>
Whole clamped(long double value) {
  using Range = std::numeric_limits<Whole>;
  if (value >= static_cast<long double>(Range::max())) return Range::max();
  if (value <= static_cast<long double>(Range::min())) return Range::min();
  return static_cast<Whole>(value);
}

template <class Whole, class Wide>
Whole clamped_wide(Wide value) {
  using Range = std::numeric_limits<Whole>;
  if (value > Wide{Range::max()}) return Range::max();
  if (value < Wide{Range::min()}) return Range::min();
  return static_cast<Whole>(value);
}

template <class Whole>
void check_conversions(Rng& rng) {
  for (int i = 0; i < 20000; ++i) {
    const double value = any_double(rng);
    const Whole expected = std::isnan(value) ? Whole{0} : clamped<Whole>(value);
    if (saturate<Whole>(value) == expected) continue;
    FAIL_CHECK("saturate(" << value << ")");
  }
}

template <class Whole, class Wide>
void check_arithmetic(Rng& rng) {
  for (int i = 0; i < 20000; ++i) {
    const auto a = any_whole<Whole>(rng), b = any_whole<Whole>(rng);
    const bool same = saturating_sum(a, b) == clamped_wide<Whole, Wide>(Wide{a} + Wide{b}) &&
                      saturating_product(a, b) == clamped_wide<Whole, Wide>(Wide{a} * Wide{b});
    if (!same) FAIL_CHECK(a << " and " << b);
  }
}

}  // namespace

TEST_CASE("doubles of any size become the nearest integer of the range, without their fraction") {
  const std::uint64_t seed = test_seed(20261126);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  check_conversions<int>(rng);
  check_conversions<std::int64_t>(rng);
  check_conversions<std::uint32_t>(rng);
  check_conversions<std::uint64_t>(rng);
}

TEST_CASE("the ends of 64 bits, which no double equals, are kept to") {
  CHECK(saturate<std::uint64_t>(0x1p64) == ~std::uint64_t{0});
  CHECK(saturate<std::uint64_t>(0x1.fffffffffffffp63) == 0xfffffffffffff800U);
  CHECK(saturate<std::uint64_t>(-0.5) == 0);
  CHECK(saturate<std::int64_t>(0x1p63) == std::numeric_limits<std::int64_t>::max());
  CHECK(saturate<std::int64_t>(-0x1p63) == std::numeric_limits<std::int64_t>::min());
  CHECK(saturate<int>(2147483647.0) == 2147483647);
  CHECK(saturate<int>(std::nan("")) == 0);
}

TEST_CASE("sums and products beyond the range are its nearest end") {
  const std::uint64_t seed = test_seed(20261127);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  __extension__ using Signed = __int128;
  __extension__ using Unsigned = unsigned __int128;
  check_arithmetic<int, std::int64_t>(rng);
  check_arithmetic<std::int64_t, Signed>(rng);
  check_arithmetic<std::uint64_t, Unsigned>(rng);
}

TEST_CASE("the longest time of doubles is the longest time of a clock") {
  CHECK(saturate_time<Clock::duration>(Seconds::max()) == Clock::duration::max());
  CHECK(saturate_time<Clock::duration>(-Seconds::max()) == Clock::duration::min());
  CHECK(saturate_time<std::chrono::milliseconds>(Seconds(1.5)) == std::chrono::milliseconds(1500));
  CHECK(saturate_time<std::chrono::hours>(Seconds(7199)) == std::chrono::hours(1));
}
