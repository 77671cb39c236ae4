// Stochastic gradient descent over a flat vector of parameters.
#pragma once

#include <fast/core/memory.hpp>

#include <cstddef>
#include <span>

namespace fast::nn {

struct SgdOptions {
  double learning_rate = 0.05;
  double momentum = 0.9;    ///< in [0, 1)
  double weight_decay = 0;  ///< not negative; on every parameter
};

/// g += weight_decay·w; m = momentum·m + g; w -= learning_rate·m: what PyTorch's SGD computes, in
/// one pass. T is float or double.
template <class T>
class Sgd {
 public:
  /// Throws Error(argument) on options that are not finite or out of range.
  Sgd(SgdOptions options, std::size_t parameter_count);

  /// Both as long as the constructor was told.
  void step(std::span<T> parameters, std::span<const T> gradients);

  void set_learning_rate(double learning_rate);
  const SgdOptions& options() const { return options_; }
  std::span<T> momentum() { return momentum_.as<T>(); }  ///< m; empty without momentum

 private:
  SgdOptions options_;
  std::size_t count_;
  AlignedBuffer momentum_;
};

extern template class Sgd<float>;
extern template class Sgd<double>;

}  // namespace fast::nn
