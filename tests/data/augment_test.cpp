#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/synthetic.hpp>
#include <numeric>
#include <set>

#include "support/catch.hpp"

using namespace fast;
using data::augment;

TEST_CASE("a crop is the image moved, with zeros beside it, mirrored every other time") {
  const std::vector<std::int64_t> shape = {2, 3, 4};
  std::set<std::vector<float>> seen;
  int mirrored = 0;
  Rng rng(3);
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<float> image(24);
    std::iota(image.begin(), image.end(), 1.0F);
    augment(image, shape, {.padding = 1, .flip = true}, rng);
    seen.insert(image);
    // The middle row always has two old neighbors side by side.
    const float step = image[6] - image[5];
    CHECK(std::abs(step) == 1);
    mirrored += step < 0;
    CHECK((image[17] - image[5] == 12 && image[18] - image[6] == 12));
  }
  CHECK(seen.size() == 3 * 3 * 2);
  CHECK((mirrored > 140 && mirrored < 260));
}

TEST_CASE("without padding and flips an image stays") {
  std::vector<float> image(12);
  std::iota(image.begin(), image.end(), 0.0F);
  const auto before = image;
  Rng rng(1);
  augment(image, {3, 2, 2}, {.padding = 0, .flip = false}, rng);
  CHECK(image == before);
  CHECK_THROWS_WITH(augment(image, {12}, {}, rng), ContainsSubstring("1 sides"));
  CHECK_THROWS_WITH(augment(image, {3, 2, 2}, {.padding = -1}, rng), ContainsSubstring("-1"));
  CHECK_THROWS_WITH(augment(image, {3, 2, 2}, {.rotation = 181}, rng), ContainsSubstring("181"));
  CHECK_THROWS_WITH(augment(image, {3, 2, 2}, {.jitter = 1.5}, rng), ContainsSubstring("1.5"));
  CHECK_THROWS_WITH(augment(image, {3, 2, 2}, {.erasing = -0.5}, rng), ContainsSubstring("-0.5"));
}

TEST_CASE("an image is changed by seed, epoch and sample, whoever loads it") {
  const data::Dataset all = data::synthetic_classification(16, {1, 8, 8}, 2, 1);
  const auto inputs = [&](std::uint64_t seed, std::size_t epoch, bool changed) {
    data::Loader loader(all, {}, 1, 0, 16, 5);
    if (changed) loader.augment({.padding = 2}, seed);
    const Batch& batch = loader.batch(epoch, 0);
    return std::vector(batch.inputs.begin(), batch.inputs.end());
  };
  CHECK(inputs(1, 0, true) == inputs(1, 0, true));
  CHECK(inputs(1, 0, true) != inputs(2, 0, true));
  CHECK(inputs(1, 0, true) != inputs(1, 0, false));
}

// Bilinear values of a linear image are exact: the turned one has the slope turned.
TEST_CASE("a turned image has its slope turned about the middle, by up to the angle") {
  constexpr std::int64_t side = 9;
  Rng rng(7);
  double largest = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> image(2 * side * side);
    const auto at = [&](std::int64_t plane, std::int64_t r, std::int64_t c) -> float& {
      return image[static_cast<std::size_t>((plane * side + r) * side + c)];
    };
    for (std::int64_t r = 0; r < side; ++r)
      for (std::int64_t c = 0; c < side; ++c) {
        at(0, r, c) = static_cast<float>(3 * r + 5);
        at(1, r, c) = static_cast<float>(2 * c - 1);
      }
    augment(image, {2, side, side}, {.padding = 0, .flip = false, .rotation = 30}, rng);
    CHECK(double{at(0, 4, 4)} == Approx(17));
    CHECK(double{at(1, 4, 4)} == Approx(7));
    const double down = double{at(0, 5, 4)} - 17, right = double{at(0, 4, 5)} - 17;
    CHECK(std::hypot(down, right) == Approx(3).epsilon(1e-4));
    const double angle = std::atan2(right, down);
    CHECK(double{at(1, 5, 4)} - 7 == Approx(-2 * std::sin(angle)).margin(1e-4));
    largest = std::max(largest, std::fabs(angle));
  }
  const double limit = 30 * 3.14159265358979 / 180;
  CHECK((largest > 0.9 * limit && largest <= limit * (1 + 1e-4)));
}

TEST_CASE("colors differ by one contrast, saturation and brightness an image") {
  Rng rng(8);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<float> image{1, 2, 0.5F, -1, 3, 2, 0, -2, 1};  // planes of 1 × 3
    const std::vector<float> old = image;
    augment(image, {3, 1, 3}, {.padding = 0, .flip = false, .jitter = 0.4}, rng);
    const auto gray = [](const std::vector<float>& of, std::size_t i) {
      return (double{of[i]} + double{of[i + 3]} + double{of[i + 6]}) / 3;
    };
    const double contrast = (gray(image, 0) - gray(image, 1)) / (gray(old, 0) - gray(old, 1));
    const double brightness = gray(image, 0) - contrast * gray(old, 0);
    const double saturation =
        (double{image[0]} - gray(image, 0)) / (contrast * (double{old[0]} - gray(old, 0)));
    for (const double factor : {contrast, saturation})
      CHECK((factor > 0.6 - 1e-4 && factor < 1.4 + 1e-4));
    CHECK(std::fabs(brightness) <= 0.4 + 1e-4);
    for (std::size_t i = 0; i < 9; ++i) {
      const double g = gray(old, i % 3);
      CHECK(double{image[i]} ==
            Approx(contrast * (g + saturation * (double{old[i]} - g)) + brightness).margin(1e-4));
    }
  }
}

TEST_CASE("a rectangle of .02 to .33 of the image is erased, as often as asked for") {
  constexpr std::size_t side = 32;
  Rng rng(9);
  int erased = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<float> image(2 * side * side, 1);
    augment(image, {2, side, side}, {.padding = 0, .flip = false, .erasing = 0.5}, rng);
    const std::vector<float> first(image.begin(), image.begin() + side * side),
        second(image.begin() + side * side, image.end());
    CHECK(first == second);
    std::size_t zeros = 0, top = side, bottom = 0, left = side, right = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i] != 0) continue;
      ++zeros;
      top = std::min(top, i / side), bottom = std::max(bottom, i / side);
      left = std::min(left, i % side), right = std::max(right, i % side);
    }
    if (zeros == 0) continue;
    ++erased;
    CHECK(zeros == (bottom - top + 1) * (right - left + 1));
    CHECK((zeros > side * side / 80 && zeros < side * side / 2.7));
  }
  CHECK((erased > 150 && erased < 250));
}
