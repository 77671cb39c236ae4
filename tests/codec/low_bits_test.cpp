// Codes of 4 and 2 bits against their definitions.
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <limits>
#include <vector>

#include "codec/block.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::codec;

namespace {

const Kind int4 = by_name("int4").kind, int2 = by_name("int2").kind;
const Kind qsgd4 = by_name("qsgd4").kind, qsgd2 = by_name("qsgd2").kind;
constexpr std::size_t low_bit_counts[] = {1, 2, 3, 5, 255, 256, 257, 511, 513, 2048, 2501};

std::vector<float> uneven_values(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(rng.normal() * std::exp2(rng.uniform(-4, 4)));
  return x;
}

std::vector<float> there_and_back(Kind kind, const std::vector<float>& x) {
  std::vector<std::byte> code(coded_bytes(kind, x.size()) + 1, std::byte{0x5a});
  encode(kind, x.data(), x.size(), code.data());
  CHECK(code.back() == std::byte{0x5a});
  std::vector<float> back(x.size());
  decode(kind, code.data(), x.size(), back.data());
  return back;
}

/// visit(first, end) of each group.
template <class Visit>
void for_groups(std::size_t count, const Visit& visit) {
  for (std::size_t first = 0; first < count; first += group_elements)
    visit(first, std::min(first + group_elements, count));
}

}  // namespace

TEST_CASE("bits an element and bytes of a run") {
  CHECK(bits(Kind::identity) == 32);
  CHECK(bits(Kind::bf16) == 16);
  CHECK(bits(Kind::int8) == 8);
  CHECK(bits(int4) == 4);
  CHECK(bits(int2) == 2);
  CHECK(coded_bytes(int4, 256) == 4 + 128);
  CHECK(coded_bytes(int4, 257) == 4 + 128 + 4 + 1);
  CHECK(coded_bytes(int2, 256) == 8 + 64);
  CHECK(coded_bytes(int2, 261) == 8 + 64 + 8 + 2);
  CHECK(bits(qsgd4) == 4);
  CHECK(bits(qsgd2) == 2);
  CHECK(coded_bytes(qsgd4, 257) == 4 + 128 + 4 + 1);
  CHECK(coded_bytes(qsgd2, 261) == 4 + 64 + 4 + 2);
  CHECK(name(by_name("qsgd2")) == "qsgd2");
  CHECK(name({.kind = qsgd4}) == "qsgd4");
  CHECK_THROWS_AS(by_name("qsgd4_stochastic"), Error);
}

// arXiv 1610.02132, section 3.1, per group, and the factor 1/(1+τ) of arXiv 1902.00340.
TEST_CASE("qsgd rounds to levels of the norm at random, and contracts in the mean") {
  for (const Kind kind : {qsgd4, qsgd2}) {
    const double s = kind == qsgd4 ? 7 : 1;
    for (const std::size_t count : low_bit_counts) {
      if (count > 600) continue;
      const auto x = uneven_values(7 * count, count);
      constexpr std::uint32_t draws = 3000;
      std::vector<double> sums(count), errors(count);
      std::vector<std::byte> code(coded_bytes(kind, count));
      std::vector<float> back(count);
      for (std::uint32_t key = 0; key < draws; ++key) {
        encode(kind, x.data(), count, code.data(), {key, 0});
        decode(kind, code.data(), count, back.data());
        for_groups(count, [&](std::size_t first, std::size_t end) {
          double squares = 0, error = 0;
          for (std::size_t e = first; e < end; ++e) squares += double(x[e]) * x[e];
          const double d = static_cast<double>(end - first), norm = std::sqrt(squares);
          const double tau = std::min(d / (s * s), std::sqrt(d) / s), level = norm / s / (1 + tau);
          for (std::size_t e = first; e < end; ++e) {
            const double exact = s * std::abs(double(x[e])) / norm,
                         found = std::abs(back[e]) / level;
            REQUIRE(std::abs(found - std::nearbyint(found)) < 1e-5);
            REQUIRE((found > exact - 1 - 1e-5 && found < exact + 1 + 1e-5));
            REQUIRE((back[e] == 0 || std::signbit(back[e]) == std::signbit(x[e])));
            sums[e] += back[e] * (1 + tau) / draws;
            error += (back[e] - x[e]) * (double(back[e]) - x[e]);
          }
          errors[first] += error / squares / draws;
        });
      }
      for_groups(count, [&](std::size_t first, std::size_t end) {
        double squares = 0;
        for (std::size_t e = first; e < end; ++e) squares += double(x[e]) * x[e];
        const double d = static_cast<double>(end - first), norm = std::sqrt(squares);
        const double tau = std::min(d / (s * s), std::sqrt(d) / s);
        // A level is norm/s wide: half of it is the largest standard deviation of a draw.
        for (std::size_t e = first; e < end; ++e)
          REQUIRE(std::abs(sums[e] - x[e]) < 6 * norm / s / 2 / std::sqrt(double(draws)));
        CHECK(errors[first] <= (1 - 1 / (1 + tau)) * 1.01 + 1e-6);
      });
    }
  }
}

TEST_CASE("qsgd draws by the key and the place, whatever the runs") {
  const auto x = uneven_values(5, 512);
  std::vector<std::byte> whole(coded_bytes(qsgd4, 512)), parts(whole.size()), other(whole.size());
  encode(qsgd4, x.data(), 512, whole.data(), {9, 1024});
  encode(qsgd4, x.data(), 256, parts.data(), {9, 1024});
  encode(qsgd4, x.data() + 256, 256, parts.data() + coded_bytes(qsgd4, 256), {9, 1280});
  encode(qsgd4, x.data(), 512, other.data(), {10, 1024});
  CHECK(whole == parts);
  CHECK(whole != other);
}

TEST_CASE("4 bits are off by half a step of a seventh of the group's largest at most") {
  for (const std::size_t count : low_bit_counts) {
    const auto x = uneven_values(count, count);
    const auto back = there_and_back(int4, x);
    for_groups(count, [&](std::size_t first, std::size_t end) {
      float largest = 0;
      for (std::size_t e = first; e < end; ++e) largest = std::max(largest, std::abs(x[e]));
      for (std::size_t e = first; e < end; ++e) {
        REQUIRE(std::abs(back[e] - x[e]) <= largest / 14 * 1.00001F);
        const float steps = back[e] / (largest / 7);
        REQUIRE(std::abs(steps - std::nearbyint(steps)) < 1e-4F);
      }
    });
  }
}

TEST_CASE("2 bits are the sign and the mean size of those above or below the mean size") {
  for (const std::size_t count : low_bit_counts) {
    const auto x = uneven_values(3 * count, count);
    const auto back = there_and_back(int2, x);
    for_groups(count, [&](std::size_t first, std::size_t end) {
      double mean = 0, sums[2] = {}, many[2] = {};
      for (std::size_t e = first; e < end; ++e)
        mean += std::abs(double(x[e])) / static_cast<double>(end - first);
      for (std::size_t e = first; e < end; ++e) {
        const int above = std::abs(x[e]) > static_cast<float>(mean) ? 1 : 0;
        sums[above] += std::abs(x[e]);
        ++many[above];
      }
      double error = 0, size = 0;
      for (std::size_t e = first; e < end; ++e) {
        const int above = std::abs(x[e]) > static_cast<float>(mean) ? 1 : 0;
        const double expected = std::copysign(sums[above] / many[above], x[e]);
        REQUIRE(std::abs(back[e] - expected) <= 1e-6 * std::abs(expected));
        error += (back[e] - x[e]) * (back[e] - x[e]);
        size += double(x[e]) * x[e];
      }
      CHECK(error < size);
    });
  }
}

TEST_CASE("zeros and tiny values stay finite; what is no number is seen in its whole group") {
  for (const Kind kind : {int4, int2, qsgd4, qsgd2}) {
    CHECK(there_and_back(kind, std::vector<float>(300)) == std::vector<float>(300));
    for (const float value : there_and_back(kind, std::vector<float>(300, 1e-44F))) {
      CHECK(std::isfinite(value));
      CHECK(std::abs(value) <= 1e-43F);
    }
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> x(600, 1.0F);
      x[300] = bad;
      const auto back = there_and_back(kind, x);
      for (std::size_t e = 0; e < x.size(); ++e)
        CHECK(std::isfinite(back[e]) == (e < 256 || e >= 512));
    }
  }
}

TEST_CASE("with feedback, what is sent sums to what was given") {
  for (const Kind kind : {int4, int2, qsgd4, qsgd2}) {
    constexpr std::size_t count = 300;
    std::vector<float> error(count), sum(count), given(count), back(count);
    std::vector<std::byte> code(coded_bytes(kind, count));
    for (std::uint64_t t = 0; t < 400; ++t) {
      Rng rng(mix_seed(2, t));
      std::vector<float> x(count);
      for (std::size_t e = 0; e < count; ++e) {
        x[e] = static_cast<float>(rng.normal());
        given[e] += x[e];
      }
      encode_with_feedback(kind, x.data(), error.data(), count, code.data());
      decode(kind, code.data(), count, back.data());
      for (std::size_t e = 0; e < count; ++e) sum[e] += back[e];
    }
    for (std::size_t e = 0; e < count; ++e) REQUIRE(std::abs(sum[e] + error[e] - given[e]) < 1e-3F);
  }
}
