#include <fast/core/random.hpp>
#include <fast/mixing/robust.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("a third of a worker's values may be bad, its own among them") {
  const std::vector<std::size_t> expected{0, 0, 1, 1, 1, 2, 2, 2, 3};
  for (std::size_t neighbors = 0; neighbors < expected.size(); ++neighbors)
    CHECK(mixing::tolerated(neighbors) == expected[neighbors]);
}

TEST_CASE("the radius is the largest distance without those of the furthest that may be bad") {
  CHECK(mixing::clip_radius({}, 0) == 0);
  CHECK(mixing::clip_radius(std::vector<double>{7}, 0) == 7);
  CHECK(mixing::clip_radius(std::vector<double>{7}, 1) == 0);
  CHECK(mixing::clip_radius(std::vector<double>{7, 3}, 1) == 3);
  CHECK(mixing::clip_radius(std::vector<double>{1, 9, 4}, 1) == 4);
  CHECK(mixing::clip_radius(std::vector<double>{5, 1, 9, 4}, 1) == 5);
  CHECK(mixing::clip_radius(std::vector<double>{5, 1, 9, 4, 8}, 2) == 5);
}

TEST_CASE("at most the tolerated number of bad neighbors cannot make the radius larger") {
  Rng rng(3);
  for (std::size_t neighbors = 2; neighbors < 9; ++neighbors) {
    for (int draw = 0; draw < 200; ++draw) {
      std::vector<double> honest(neighbors - mixing::tolerated(neighbors));
      for (double& distance : honest) distance = rng.uniform();
      std::vector<double> all = honest;
      while (all.size() < neighbors) all.push_back(draw % 2 == 0 ? 1e6 * rng.uniform() : 0);
      REQUIRE(mixing::clip_radius(all, mixing::tolerated(neighbors)) <=
              *std::ranges::max_element(honest));
    }
  }
}

TEST_CASE("what is kept has the length of the radius at most, and 0 of a distance 0") {
  CHECK(mixing::kept_share(0, 0) == 1);
  CHECK(mixing::kept_share(2, 2) == 1);
  CHECK(mixing::kept_share(8, 2) == 0.25);
  CHECK(mixing::kept_share(8, 0) == 0);
  CHECK(mixing::kept_share(8, std::numeric_limits<double>::infinity()) == 1);
}

// Four workers of good will in a chain, at 0, 0, 200, 200. A bad one reads as 0 at worker 1 and as
// 200 at worker 2, with weight 0.1.
namespace {

constexpr double outer = 0.333, middle = 0.267, bad = 0.1;
using Chain = std::array<double, 4>;

double clipped(double difference, double radius) {
  return difference * mixing::kept_share(std::abs(difference), radius);
}

/// `radius` of a middle worker: its value, and those of its outer, middle and bad neighbor.
template <class Radius>
Chain ends_of_chain(const Radius& radius) {
  Chain x{0, 0, 200, 200};
  for (int round = 0; round < 5000; ++round) {
    const auto middle_one = [&](double own, double end, double other, double sent) {
      const double tau = radius(own, end, other, sent);
      return own + outer * clipped(end - own, tau) + middle * clipped(other - own, tau) +
             bad * clipped(sent - own, tau);
    };
    x = {x[0] + outer * (x[1] - x[0]), middle_one(x[1], x[0], x[2], 0),
         middle_one(x[2], x[3], x[1], 200), x[3] + outer * (x[2] - x[3])};
  }
  return x;
}

}  // namespace

TEST_CASE(
    "a bad worker keeps the halves of a chain apart, and not with clipping by the true radius") {
  const Chain plain = ends_of_chain(
      [](double, double, double, double) { return std::numeric_limits<double>::infinity(); });
  // Where the middle workers stand, 0.267 (200 - 2 x) = 0.1 x.
  const double stands = middle * 200 / (2 * middle + bad);
  CHECK(stands == Approx(84.2).margin(0.05));
  for (const std::size_t k : {0, 1}) CHECK(plain[k] == Approx(stands));
  for (const std::size_t k : {2, 3}) CHECK(plain[k] == Approx(200 - stands));

  // The paper's radius: τ² is Σ W_ij ‖x_j - x_i‖² over the good neighbors by the bad ones' weight.
  const Chain oracle = ends_of_chain([](double own, double end, double other, double) {
    const auto square = [own](double x) { return (x - own) * (x - own); };
    return std::sqrt((outer * square(end) + middle * square(other)) / bad);
  });
  for (const double x : oracle) CHECK(x == Approx(100).margin(1e-6));
}

// Nothing that a middle worker sees tells the other half from a bad neighbor.
TEST_CASE("a worker of whose neighbors all but one agree with it stays with them") {
  const Chain measured = ends_of_chain([](double own, double end, double other, double sent) {
    return mixing::clip_radius(
        std::array{std::abs(end - own), std::abs(other - own), std::abs(sent - own)}, 1);
  });
  CHECK(measured == Chain{0, 0, 200, 200});
}

namespace {

/// Of one element: sorted values, without the ends.
double trimmed_mean(std::vector<double> values, std::size_t trim) {
  std::ranges::sort(values);
  double sum = 0;
  for (std::size_t k = trim; k < values.size() - trim; ++k) sum += values[k];
  return sum / static_cast<double>(values.size() - 2 * trim);
}

}  // namespace

TEMPLATE_TEST_CASE("trimmed differences lead to the trimmed mean of each element", "", float,
                   double) {
  using T = TestType;
  const double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-15;
  Rng rng(11);
  for (const std::size_t count : {1, 7, 511, 512, 513, 1500}) {
    for (const std::size_t neighbors : {0, 1, 2, 3, 4, 5, 7, 8}) {
      const std::size_t trim = mixing::tolerated(neighbors);
      std::vector<std::vector<T>> all(neighbors + 1, std::vector<T>(count));
      for (auto& values : all) {
        for (T& value : values) value = static_cast<T>(rng.normal());
      }
      const std::vector<T>& own = all.back();
      std::vector<const T*> values;
      for (std::size_t j = 0; j < neighbors; ++j) values.push_back(all[j].data());
      std::vector<T> out(count);
      std::vector<std::uint64_t> kept(neighbors, 0);
      mixing::trimmed_differences(out.data(), own.data(), values, trim, count, kept);
      std::uint64_t own_kept = 0, all_kept = 0;
      for (const std::uint64_t of : kept) all_kept += of;
      for (std::size_t e = 0; e < count; ++e) {
        std::vector<double> column;
        for (const auto& of : all) column.push_back(of[e]);
        const double expected = trimmed_mean(column, trim) - own[e];
        REQUIRE(double{out[e]} == Approx(expected).margin(tolerance));
        std::ranges::sort(column);
        own_kept += own[e] >= column[trim] && own[e] <= column[neighbors - trim] ? 1 : 0;
      }
      CHECK(all_kept + own_kept == count * (neighbors + 1 - 2 * trim));
    }
  }
}

TEST_CASE("equal values stay exactly as they are, and all of them count") {
  const std::vector<double> own{0.1, 1e20, -3};
  std::vector<double> out(3, 7);
  std::vector<std::uint64_t> kept(4, 0);
  mixing::trimmed_differences(out.data(), own.data(), std::vector<const double*>(4, own.data()), 1,
                              3, kept);
  CHECK(out == std::vector<double>(3, 0));
  CHECK(kept == std::vector<std::uint64_t>(4, 3));
}
