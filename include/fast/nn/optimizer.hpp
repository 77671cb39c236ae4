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

/// g += weight_decay·w; m = momentum·m + g; δ = -learning_rate·m, or with `nesterov`
/// -learning_rate·(g + momentum·m): PyTorch's SGD without dampening.
struct SgdOptions {
  double learning_rate = 0.05;
  double momentum = 0.9;    ///< in [0, 1)
  double weight_decay = 0;  ///< not negative; on every parameter
  bool nesterov = false;    ///< needs momentum
};

/// Adam (Kingma & Ba 2015, arXiv 1412.6980): m = beta1·m + (1-beta1)·g, v = beta2·v + (1-beta2)·g²,
/// δ = -learning_rate · m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon). Weight decay is added to
/// the gradient first or, with `decoupled_decay`, is -learning_rate·weight_decay·w in δ: AdamW
/// (Loshchilov & Hutter 2019, arXiv 1711.05101).
struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;       ///< in [0, 1)
  double beta2 = 0.999;     ///< in [0, 1)
  double epsilon = 1e-8;    ///< positive
  double weight_decay = 0;  ///< not negative; on every parameter
  bool decoupled_decay = false;
};

using OptimizerSpec = std::variant<SgdOptions, AdamOptions>;

/// "sgd", "adam" or "adamw" with its defaults, adamw with a weight decay of 0.01. Throws
/// Error(argument) with the choices on another name.
OptimizerSpec optimizer_spec(std::string_view name);

/// The rule at work, with its state: as many values again as there are parameters for momentum,
/// twice as many for Adam. Every element is computed from its own weight, gradient and state alone,
/// so that a step may be taken in any parts, in any order. T is float or double.
template <class T>
class Optimizer {
 public:
  /// Throws Error(argument) on options that are not finite or out of range.
  Optimizer(OptimizerSpec spec, std::size_t parameter_count);

  /// One whole step: parameters += δ. Both as long as the constructor was told.
  void step(std::span<T> parameters, std::span<const T> gradients);

  /// The same in parts: once a step begin_step(), then write_delta() or add_delta() for ranges that
  /// cover each element once, `first` being a range's place in the flat vector. write_delta()
  /// leaves the parameters alone. Ranges apart from each other may be done by several threads.
  void begin_step() { ++steps_; }
  void write_delta(std::size_t first, std::span<const T> parameters, std::span<const T> gradients,
                   std::span<T> delta);
  void add_delta(std::size_t first, std::span<T> parameters, std::span<const T> gradients);

  double learning_rate() const;
  /// Throws Error(argument) unless finite and not negative.
  void set_learning_rate(double learning_rate);
  const OptimizerSpec& spec() const { return spec_; }

  /// "momentum"; "adam.m", "adam.v" and "adam.steps" (i64); nothing for plain SGD. The views hold
  /// as long as the optimizer stays where it is.
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
