#include <bit>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <limits>
#include <vector>

#include "codec/block.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::codec;
using Catch::Matchers::Contains;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr Kind kinds[] = {Kind::bf16, Kind::fp16, Kind::int8};
constexpr std::size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 31, 255, 256, 257, 511, 513, 2048, 2500};

template <class T>
std::vector<T> random_values(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(rng.normal() * std::exp2(rng.uniform(-8, 8)));
  return values;
}

template <class T>
std::vector<T> round_trip(Kind kind, const std::vector<T>& x, const Rounding& rounding = {}) {
  // One byte beyond, that nobody may touch.
  std::vector<std::byte> code(coded_bytes(kind, x.size()) + 1, std::byte{0x5a});
  encode(kind, x.data(), x.size(), code.data(), rounding);
  CHECK(code.back() == std::byte{0x5a});
  std::vector<T> back(x.size() + 1, T{77});
  decode(kind, code.data(), x.size(), back.data());
  CHECK(back.back() == T{77});
  back.pop_back();
  return back;
}

/// The largest error allowed of element e.
template <class T>
double bound(Kind kind, const std::vector<T>& x, std::size_t e) {
  if (kind == Kind::bf16) return std::abs(double(x[e])) * 0x1p-8;
  if (kind == Kind::fp16) return std::max(std::abs(double(x[e])) * 0x1p-11, 0x1p-25);
  double largest = 0;
  const std::size_t begin = e / group_elements * group_elements;
  for (std::size_t i = begin; i < std::min(begin + group_elements, x.size()); ++i) {
    largest = std::max(largest, std::abs(double(x[i])));
  }
  return largest / 127 / 2 * (1 + 1e-5);
}

}  // namespace

TEMPLATE_TEST_CASE("a round trip is off by half a unit of the last place at most", "", float,
                   double) {
  for (const Kind kind : kinds) {
    for (const std::size_t count : counts) {
      const auto x = random_values<TestType>(7 + count, count);
      const auto back = round_trip(kind, x);
      for (std::size_t e = 0; e < count; ++e) {
        const double slack = std::abs(double(x[e])) * 0x1p-24;  // a double goes through a float
        REQUIRE(std::abs(double(back[e]) - double(x[e])) <= bound(kind, x, e) + slack);
      }
      if (kind != Kind::int8) CHECK(round_trip(kind, back) == back);
    }
  }
}

TEST_CASE("16-bit conversions are those of single elements") {
  std::vector<float> x;
  for (std::uint32_t upper = 0; upper < 0x10000; upper += 3) {
    for (const std::uint32_t lower : {0U, 1U, 0x1000U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  std::vector<BFloat16> b(x.size());
  std::vector<Float16> h(x.size());
  std::vector<float> from_b(x.size()), from_h(x.size());
  narrow(b.data(), x.data(), x.size());
  narrow(h.data(), x.data(), x.size());
  widen(from_b.data(), b.data(), x.size());
  widen(from_h.data(), h.data(), x.size());
  for (std::size_t e = 0; e < x.size(); ++e) {
    INFO(x[e]);
    if (std::isnan(x[e])) {
      REQUIRE(std::isnan(from_b[e]));
      REQUIRE(std::isnan(from_h[e]));
    } else {
      REQUIRE(b[e].bits == to_bfloat16(x[e]).bits);
      REQUIRE(h[e].bits == to_float16(x[e]).bits);
      REQUIRE(from_b[e] == to_float(b[e]));
      REQUIRE(from_h[e] == to_float(h[e]));
    }
  }
}

TEST_CASE("what is not finite never becomes a number") {
  for (const Kind kind : kinds) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{9}, std::size_t{600}}) {
      for (std::size_t at = 0; at < count; at += 37) {
        for (const float bad : {infinity, -infinity, not_a_number}) {
          for (const Rounding& rounding : {Rounding{}, Rounding{17}}) {
            std::vector<float> x(count, 0.5F);
            x[at] = bad;
            const auto back = round_trip(kind, x, rounding);
            REQUIRE_FALSE(std::isfinite(back[at]));
            REQUIRE(std::isnan(back[at]) == (std::isnan(bad) || kind == Kind::int8));
            for (std::size_t e = 0; e < count; ++e) {
              const bool lost = kind == Kind::int8 && e / group_elements == at / group_elements;
              if (e != at && !lost) REQUIRE(std::abs(back[e] - 0.5F) < 1e-2F);
            }
            std::vector<float> error(count);
            std::vector<std::byte> code(coded_bytes(kind, count));
            encode_with_feedback(kind, x.data(), error.data(), count, code.data(), rounding);
            for (const float e : error) REQUIRE(std::isfinite(e));
          }
        }
      }
    }
  }
}

TEST_CASE("values too small for a scale and zeros come back as zeros") {
  for (const float tiny : {0.0F, -0.0F, 1e-40F, 0x1p-120F}) {
    const std::vector<float> x(300, tiny);
    for (const float back : round_trip(Kind::int8, x)) REQUIRE(std::abs(back - tiny) <= 0x1p-118F);
  }
  const std::vector<float> huge(3, std::numeric_limits<float>::max());
  CHECK(round_trip(Kind::int8, huge)[2] == Approx(huge[2]));
}

TEST_CASE("each group has its own scale") {
  std::vector<float> x(512, 1e-4F);
  x[0] = 1000;
  const auto back = round_trip(Kind::int8, x);
  CHECK(back[1] == 0);
  CHECK(back[256] == Approx(1e-4F));
}

TEMPLATE_TEST_CASE("with error feedback the average of the codes is x", "", float, double) {
  for (const Kind kind : kinds) {
    for (const bool stochastic : {false, true}) {
      if (stochastic && kind == Kind::fp16) continue;
      constexpr std::size_t count = 700;
      constexpr int rounds = 400;
      const auto x = random_values<TestType>(5, count);
      std::vector<TestType> error(count), decoded(count);
      std::vector<double> sum(count);
      std::vector<std::byte> code(coded_bytes(kind, count));
      for (int t = 0; t < rounds; ++t) {
        Rounding rounding;
        if (stochastic) rounding.key = static_cast<std::uint32_t>(t);
        encode_with_feedback(kind, x.data(), error.data(), count, code.data(), rounding);
        decode(kind, code.data(), count, decoded.data());
        for (std::size_t e = 0; e < count; ++e) sum[e] += double(decoded[e]);
      }
      // The sum of the codes is off by one error in all, however many rounds there were.
      for (std::size_t e = 0; e < count; ++e) {
        const double once = 3 * bound(kind, x, e) + std::abs(double(x[e])) * 1e-4;
        REQUIRE(std::abs(sum[e] - rounds * double(x[e])) <= once);
        REQUIRE(std::abs(sum[e] + double(error[e]) - rounds * double(x[e])) <=
                (std::abs(double(x[e])) + 4 * bound(kind, x, e)) * rounds * 1e-7);
      }
    }
  }
}

TEST_CASE("stochastic rounding is unbiased, seeded and lands on either neighbor") {
  for (const Kind kind : {Kind::bf16, Kind::int8}) {
    constexpr std::size_t count = 300;
    constexpr int rounds = 4000;
    auto x = random_values<float>(11, count);
    x[0] = x[256] = 2000;  // every other value is far below the largest
    std::vector<double> sum(count);
    for (int t = 0; t < rounds; ++t) {
      const auto back =
          round_trip(kind, x, {mix_seed(3, static_cast<std::uint64_t>(t)) & 0xffffffff});
      for (std::size_t e = 0; e < count; ++e) {
        REQUIRE(std::abs(back[e] - x[e]) <= 2 * bound(kind, x, e) * (1 + 1e-4));
        sum[e] += double(back[e]);
      }
    }
    for (std::size_t e = 0; e < count; ++e) {
      // A rounding's standard deviation is half the distance between codes at most: bound().
      const double five_deviations = 5 * bound(kind, x, e) / std::sqrt(rounds);
      REQUIRE(std::abs(sum[e] / rounds - double(x[e])) <= five_deviations + 1e-6 * std::abs(x[e]));
    }
    CHECK(round_trip(kind, x, {9}) == round_trip(kind, x, {9}));
    CHECK(round_trip(kind, x, {9}) != round_trip(kind, x, {10}));
    CHECK(round_trip(kind, x, {9}) != round_trip(kind, x, {9, 1}));
  }
}

TEST_CASE("runs of whole groups may be coded one by one") {
  for (const Kind kind : kinds) {
    const auto x = random_values<float>(2, 2048 + 300);
    for (const Rounding& rounding : {Rounding{}, Rounding{23}}) {
      std::vector<std::byte> whole(coded_bytes(kind, x.size())), parts(whole.size());
      encode(kind, x.data(), x.size(), whole.data(), rounding);
      encode(kind, x.data(), 2048, parts.data(), rounding);
      encode(kind, x.data() + 2048, 300, parts.data() + coded_bytes(kind, 2048),
             {rounding.key, 2048});
      CHECK(whole == parts);
    }
  }
}

TEST_CASE("codecs come by name, and an unknown name lists them") {
  for (const auto name : names()) CHECK(codec::name(by_name(name)) == name);
  CHECK(by_name("int8_stochastic").stochastic);
  CHECK_THROWS_WITH(by_name("fp8"), Contains("codec: \"fp8\" is unknown; choose one of identity, "
                                             "bf16, bf16_stochastic, fp16, int8, int8_stochastic"));
  CHECK_THROWS_WITH(by_name("sparse"), Contains("unknown"));
  CHECK_THROWS_AS(codec::name({.kind = Kind::fp16, .stochastic = true}), Error);
}
