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
