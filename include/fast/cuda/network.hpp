// nn's models on a device: the same ModelSpec, flat vectors and results as nn::Network.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>

#include <memory>
#include <span>

namespace fast::cuda {

struct NetworkOptions {
  int device = 0;
  /// Factors of convolutions and products are rounded to TF32, 10 bits of mantissa.
  bool tf32 = false;
};

/// A model in f32. Parameters, gradients and buffers lie in the device's memory, in the order and
/// layout of nn::parameters(spec) and nn::buffers(spec). Convolutions are cuDNN's, dense layers
/// cuBLASLt's, the rest are kernels of our own. A batch's works, with their memory, are kept for
/// the last few batch sizes. Equal to nn::Network but for rounding. One thread at a time.
class Network {
 public:
  /// Parameters are zeros, buffers their initial values. Throws Error(argument) when the spec does
  /// not hold together or has layers without a device form (GroupNorm), Error(resource) as
  /// cuda::device() does and when cuDNN or cuBLASLt fail.
  explicit Network(nn::ModelSpec spec, NetworkOptions options = {});
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const nn::ModelSpec& spec() const;
  const Stream& stream() const;  ///< all work goes there
  std::span<float> parameters();
  std::span<float> gradients();  ///< of the last loss_and_gradients()
  std::span<float> buffers();

  /// As nn::Network's; each blocks until the results are there, 300 s at most.
  double loss_and_gradients(const Batch& batch);
  nn::LossResult evaluate(const Batch& batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// sum = or, unless `first`, += factor · x, enqueued. Spans of one length on the stream's device.
void add_scaled(std::span<float> sum, std::span<const float> x, float factor, bool first,
                const Stream& stream);

}  // namespace fast::cuda
