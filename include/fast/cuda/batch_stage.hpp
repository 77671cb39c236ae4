// Batches on their way to a device while it trains on the last one.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/cuda/stream.hpp>

#include <memory>

namespace fast::cuda {

/// Pinned memory that a loader makes batches in, each with its copy on the device, which begins on
/// a stream of its own as soon as the batch is whole. Whoever trains finds it there (take()). Must
/// outlive the loader and the network that are given it.
class BatchStage final : public BatchMemory {
 public:
  /// Throws Error(resource) as cuda::device() does.
  explicit BatchStage(int device = 0);
  ~BatchStage() override;

  std::shared_ptr<float> allocate(std::size_t values) override;
  void refill(const float* inputs) override;
  void filled(const Batch& batch) override;

  /// The copy of a batch, or of a part of one, for work enqueued on `stream` from now on; null when
  /// it was not made here. That work must be done before the loader is asked for the next batch.
  const float* take(const Batch& batch, const Stream& stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::cuda
