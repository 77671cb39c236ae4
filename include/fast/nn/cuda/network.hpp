// Models of nn on a device. ModelSpec, flat vectors and results are those of nn::Network.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/observer.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/cuda/stream.hpp>
#include <fast/nn/cuda/optimizer.hpp>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace fast::cuda {

// Copies batches to a device while the device trains on the previous batch.

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

/// The version of cuDNN, such as 91900 for 9.19. Throws Error(resource) if it is older than the one
/// that this library was built with.
int cudnn_version();

/// Precision of a network. f32: no rounding. tf32: factors of convolutions, products and
/// recurrences are rounded to 10 bits of mantissa. bf16: factors, values between layers and their
/// gradients are rounded to 7 bits. Parameters, gradients of parameters, buffers, statistics, sums
/// and the loss are f32 in all three. Exception: in bf16, cuDNN rounds the gradients of convolution
/// weights.
enum class Precision : std::uint8_t { f32, tf32, bf16 };

/// "f32", "tf32" or "bf16". Throws Error(argument) with the choices on another name.
Precision precision_from(std::string_view name);
std::string_view name(Precision precision) noexcept;

struct NetworkOptions {
  int device = 0;
  Precision precision = Precision::f32;
  /// If it is true, a batch of a new size measures up to 4 plans of cuDNN for each convolution and
  /// up to 4 algorithms of cuBLASLt for each dense layer, for at most 10 s in the life of a
  /// network. The fastest ones are kept, also for later runs: in $XDG_CACHE_HOME/fast or
  /// ~/.cache/fast, for this card with these versions of the libraries. Otherwise the first one of
  /// the heuristics that the device accepts is taken. With autotune, runs may differ in rounding.
  bool autotune = false;
  /// Launch the whole pass as one CUDA graph from the second batch of a size on. In train(), the
  /// graph includes the optimizer's step.
  bool graph = false;
  /// Do not use plans that cuDNN marks as not deterministic. A repeated run on the same card with
  /// the same libraries then gives the same bits, but may be slower. Not with autotune, which
  /// depends on time measurements.
  bool deterministic = false;
  /// A stage that may have copied batches to the device. Null: batches are copied here.
  std::shared_ptr<BatchStage> stage = {};
  /// What autotune has measured, and what keeps its results from being kept. Empty: silence.
  LogSink log = {};
};

/// A model on a device. Parameters, gradients and buffers lie in the memory of the device, in the
/// order and layout of nn::parameters(spec) and nn::buffers(spec). cuDNN computes convolutions and
/// LSTMs, cuBLASLt dense layers, and kernels of FAST all others. The works and memory of the last
/// few batch sizes are kept. Results equal those of nn::Network except for rounding. Not
/// thread-safe.
class Network {
 public:
  /// Parameters are zeros, and buffers have their initial values. Throws Error(argument) if the
  /// layers do not fit each other, and Error(resource) as cuda::device() does and if cuDNN or
  /// cuBLASLt fail.
  explicit Network(nn::ModelSpec spec, NetworkOptions options = {});
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const nn::ModelSpec& spec() const;
  const Stream& stream() const;  ///< of all work
  std::span<float> parameters();
  std::span<float> gradients();  ///< of the last loss_and_gradients()
  std::span<float> buffers();

  /// These functions are as in nn::Network. Each call blocks until the results are there, at most
  /// 300 s.
  double loss_and_gradients(const Batch& batch);
  /// Correct samples in the last loss_and_gradients() or train(), before its step.
  std::size_t correct() const;
  nn::LossResult evaluate(const Batch& batch);

  /// loss_and_gradients() and then the optimizer's step, with one wait for both. The optimizer must
  /// be of this device and have as many parameters. Throws as both do.
  double train(const Batch& batch, Optimizer<float>& optimizer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Enqueues sum = factor · x if `first`, else sum += factor · x. The spans have the same length and
/// lie on the device of the stream.
void add_scaled(std::span<float> sum, std::span<const float> x, float factor, bool first,
                const Stream& stream);

}  // namespace fast::cuda
