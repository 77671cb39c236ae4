// A minibatch of samples with what a model learns of them, as loaders hand it out and backends take
// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace fast {

/// Non-owning. `inputs` holds count × product(sample_shape) values, row-major, images as C×H×W.
/// A sample has either labels or targets: product(target_shape) of them, row-major.
struct Batch {
  std::span<const float> inputs;
  std::span<const std::int32_t> labels;         ///< in [0, classes); empty where there are targets
  std::vector<std::int64_t> sample_shape;       ///< without the batch's side
  std::span<const float> targets = {};          ///< numbers to be predicted; empty where labels are
  std::vector<std::int64_t> target_shape = {};  ///< of one sample; empty: one label or one number
  /// Mixed samples (data::Loader::mix()) have two labels: `labels` count with `share` each, these
  /// with the rest. Empty: samples are not mixed.
  std::span<const std::int32_t> mixed_labels = {};
  double share = 1;

  std::size_t target_size() const {  ///< labels or targets of one sample
    std::size_t size = 1;
    for (const std::int64_t side : target_shape) size *= static_cast<std::size_t>(side);
    return size;
  }
  std::size_t count() const {  ///< samples
    const std::size_t all = targets.empty() ? labels.size() : targets.size();
    return all / std::max<std::size_t>(target_size(), 1);
  }
};

/// A model that learns one class label a sample calls it. Throws Error(argument), beginning with
/// `who`, on targets and on several labels a sample.
void require_class_labels(const Batch& batch, std::string_view who);

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

// A part of a minibatch, for micro-batches.

/// The samples [first, first + count) of a batch. The batch's memory stays in use.
Batch part_of(const Batch& batch, std::size_t first, std::size_t count);

}  // namespace fast
