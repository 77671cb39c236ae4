// nn's models on a device: the same ModelSpec, flat vectors and results as nn::Network.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/cuda/batch_stage.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/cuda/optimizer.hpp>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace fast::cuda {

/// f32; tf32: factors of convolutions, products and recurrences are rounded to 10 bits of mantissa;
/// bf16: so is all that layers hand on, and its gradients, to 7 bits. Parameters, gradients,
/// buffers, statistics, sums and the loss are f32 in all three; but in bf16 cuDNN rounds what
/// convolutions' kernels get of gradients.
enum class Precision : std::uint8_t { f32, tf32, bf16 };

/// "f32", "tf32" or "bf16". Throws Error(argument) with the choices on another name.
Precision precision_from(std::string_view name);
std::string_view name(Precision precision) noexcept;

struct NetworkOptions {
  int device = 0;
  Precision precision = Precision::f32;
  /// Try up to 8 of cuDNN's ways to each convolution and of cuBLASLt's to each dense layer's
  /// product for a batch of new size and keep the fastest; else their heuristics' first that the
  /// device takes. Runs may then differ in rounding.
  bool autotune = false;
  /// From the second batch of a size on, launch the whole pass, and in train() the optimizer's step
  /// with it, as one CUDA graph.
  bool graph = false;
  /// Leave out cuDNN's ways that it marks as not deterministic, so that a run repeated on the same
  /// card with the same libraries gives the same bits; slower where those were the fastest. Not
  /// with autotune, whose choice depends on the clock.
  bool deterministic = false;
  /// Where batches may be on the device already; null: they are copied.
  std::shared_ptr<BatchStage> stage = {};
};

/// A model on a device. Parameters, gradients and buffers lie in the device's memory, in the order
/// and layout of nn::parameters(spec) and nn::buffers(spec). Convolutions and LSTMs are cuDNN's,
/// dense layers cuBLASLt's, the rest are kernels of our own. A batch's works, with their memory,
/// are kept for the last few batch sizes. Equal to nn::Network but for rounding. One thread at a
/// time.
class Network {
 public:
  /// Parameters are zeros, buffers their initial values. Throws Error(argument) when the spec does
  /// not hold together, Error(resource) as cuda::device() does and when cuDNN or cuBLASLt fail.
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

  /// loss_and_gradients(), then the optimizer's step of the parameters, waited for at once. Throws
  /// as both; the optimizer is one of this device for as many parameters.
  double train(const Batch& batch, Optimizer<float>& optimizer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// sum = or, unless `first`, += factor · x, enqueued. Spans of one length on the stream's device.
void add_scaled(std::span<float> sum, std::span<const float> x, float factor, bool first,
                const Stream& stream);

}  // namespace fast::cuda
