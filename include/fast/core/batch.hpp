// A minibatch of labelled samples, as loaders hand it out and backends take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fast {

/// Non-owning. `inputs` holds count × product(sample_shape) values, row-major, images as C×H×W.
struct Batch {
  std::span<const float> inputs;
  std::span<const std::int32_t> labels;    ///< count values in [0, classes)
  std::vector<std::int64_t> sample_shape;  ///< without the batch's side
  std::size_t count() const { return labels.size(); }
};

}  // namespace fast
