// Optimizers as elementwise rules over a flat vector of parameters.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace fast::nn {

/// PyTorch's SGD without dampening: g += weight_decay·w; m = momentum·m + g; δ = -learning_rate·m.
/// `nesterov` makes δ = -learning_rate·(g + momentum·m).
struct SgdOptions {
  double learning_rate = 0.05;
  double momentum = 0.9;    ///< in [0, 1)
  double weight_decay = 0;  ///< not negative; on every parameter
  bool nesterov = false;    ///< needs momentum
};

/// Adam (Kingma & Ba 2015, arXiv 1412.6980): m = beta1·m + (1-beta1)·g, v = beta2·v + (1-beta2)·g²,
/// δ = -learning_rate · m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon). Weight decay is first
/// added to the gradient. With `decoupled_decay` (AdamW, Loshchilov & Hutter 2019, arXiv
/// 1711.05101), δ contains -learning_rate·weight_decay·w instead.
struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;       ///< in [0, 1)
  double beta2 = 0.999;     ///< in [0, 1)
  double epsilon = 1e-8;    ///< positive
  double weight_decay = 0;  ///< not negative; on every parameter
  bool decoupled_decay = false;
};

using OptimizerSpec = std::variant<SgdOptions, AdamOptions>;

/// The defaults of "sgd", "adam" or "adamw"; adamw has a weight decay of 0.01. Throws
/// Error(argument) with the choices on another name.
OptimizerSpec optimizer_spec(std::string_view name);

/// An optimizer with its state: one value per parameter for momentum, two for Adam. Each element
/// depends on its own weight, gradient and state only. A step may therefore be computed in any
/// parts and any order. T is float or double.
template <class T>
class Optimizer {
 public:
  /// Throws Error(argument) on options that are not finite or out of range.
  Optimizer(OptimizerSpec spec, std::size_t parameter_count);

  /// A whole step: parameters += δ. Both spans have parameter_count elements.
  void step(std::span<T> parameters, std::span<const T> gradients);

  /// A step in parts. Call begin_step() once, then write_delta() or add_delta() for ranges that
  /// cover each element once. `first` is the place of a range in the flat vector. write_delta()
  /// does not change the parameters. Several threads may process disjoint ranges.
  void begin_step() { ++steps_; }
  void write_delta(std::size_t first, std::span<const T> parameters, std::span<const T> gradients,
                   std::span<T> delta);
  void add_delta(std::size_t first, std::span<T> parameters, std::span<const T> gradients);

  double learning_rate() const;
  /// Throws Error(argument) if it is negative or not finite.
  void set_learning_rate(double learning_rate);
  const OptimizerSpec& spec() const { return spec_; }

  /// "momentum", or "adam.m", "adam.v" and "adam.steps" (i64), or nothing for plain SGD. The views
  /// are valid until the optimizer is moved or destroyed.
  std::vector<TensorView> state();

 private:
  std::span<T> slot(std::size_t index);
  void check_range(std::size_t first, std::size_t weights, std::size_t gradients) const;
  void run(std::size_t first, const T* parameters, const T* gradients, T* out, std::size_t count,
           bool add);

  OptimizerSpec spec_;
  std::size_t count_, slots_;
  std::int64_t steps_ = 0;
  AlignedBuffer state_;
};

extern template class Optimizer<float>;
extern template class Optimizer<double>;

}  // namespace fast::nn
