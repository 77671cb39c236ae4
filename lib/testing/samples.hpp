// A made-up problem's samples.
#pragma once

#include <fast/testing/conformance.hpp>

namespace fast::testing {

struct Samples {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> shape;
  std::size_t values_per_sample = 1;

  /// The same prototypes for a seed, other noise for another `part`; labels 0, 1, ... in turn.
  Samples(const Problem& problem, std::size_t count, std::uint64_t part);
  Batch batch(std::size_t first, std::size_t count) const;
  Batch all() const { return batch(0, labels.size()); }
};

}  // namespace fast::testing
