#include <fast/core/error.hpp>
#include <fast/data/synthetic.hpp>
#include <limits>
#include <numeric>

#include "support/catch.hpp"

using namespace fast;

namespace {

std::vector<float> all_values(const data::Dataset& set) {
  std::vector<std::size_t> indices(set.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::vector<float> out(set.size() * set.sample_size());
  set.gather(indices, {}, out);
  return out;
}

/// Share of `test` whose nearest class mean of `train` is its own.
double nearest_mean_accuracy(const data::Dataset& train, const data::Dataset& test) {
  const std::size_t size = train.sample_size();
  const auto classes = static_cast<std::size_t>(train.classes());
  std::vector<double> means(classes * size), counts(classes);
  const auto values = all_values(train), held_out = all_values(test);
  for (std::size_t s = 0; s < train.size(); ++s) {
    const auto label = static_cast<std::size_t>(train.labels()[s]);
    ++counts[label];
    for (std::size_t i = 0; i < size; ++i) means[label * size + i] += values[s * size + i];
  }
  for (std::size_t i = 0; i < means.size(); ++i) means[i] /= counts[i / size];
  std::size_t correct = 0;
  for (std::size_t s = 0; s < test.size(); ++s) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::max();
    for (std::size_t c = 0; c < classes; ++c) {
      double distance = 0;
      for (std::size_t i = 0; i < size; ++i) {
        distance += std::pow(held_out[s * size + i] - means[c * size + i], 2);
      }
      if (distance < least) {
        least = distance;
        best = c;
      }
    }
    correct += best == static_cast<std::size_t>(test.labels()[s]) ? 1 : 0;
  }
  return static_cast<double>(correct) / static_cast<double>(test.size());
}

}  // namespace

TEST_CASE("the synthetic task can be learned from one part and holds in the other") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  const auto set = data::synthetic_classification(1000, {1, 4, 4}, 5, seed);
  CHECK(set.classes() == 5);
  CHECK(nearest_mean_accuracy(set.slice(0, 800), set.slice(800, 200)) > 0.98);
}

TEST_CASE("the synthetic task is a function of its seed") {
  const auto values = [](std::uint64_t seed) {
    return all_values(data::synthetic_classification(20, {3}, 2, seed));
  };
  CHECK(values(4) == values(4));
  CHECK(values(4) != values(5));
  CHECK_THROWS_AS(data::synthetic_classification(20, {3}, 0, 1), Error);
  CHECK_THROWS_AS(data::synthetic_classification(20, {0}, 2, 1), Error);
}
