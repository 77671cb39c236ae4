// Copies batches to a device while the device trains on the previous batch.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/cuda/stream.hpp>

#include <memory>

namespace fast::cuda {

/// Pinned memory in which a loader makes batches. Each batch is copied to the device on a separate
/// stream as soon as it is complete; take() gives the copy. Must outlive the loader and the network
/// that use it.
class BatchStage final : public BatchMemory {
 public:
  /// Throws Error(resource) as cuda::device() does.
  explicit BatchStage(int device = 0);
  ~BatchStage() override;

  std::shared_ptr<float> allocate(std::size_t values) override;
  void refill(const float* inputs) override;
  void filled(const Batch& batch) override;

  /// The copy of a batch or of a part of one, for work enqueued on `stream` from now on. Null if
  /// the batch was not made here. That work must be done before the loader makes the next batch.
  const float* take(const Batch& batch, const Stream& stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::cuda
