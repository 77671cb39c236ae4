// A minibatch of labeled samples, as loaders hand it out and backends take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

/// Memory that batches are made in ahead of their use, such as a device copies from. Calls come
/// from the thread that makes them, allocate() from whoever sets that up.
class BatchMemory {
 public:
  virtual ~BatchMemory() = default;
  virtual std::shared_ptr<float> allocate(std::size_t values) = 0;
  /// What is there will be written over: returns once nothing reads it.
  virtual void refill(const float* inputs) = 0;
  /// A batch is there, whole.
  virtual void filled(const Batch& batch) = 0;
};

}  // namespace fast
