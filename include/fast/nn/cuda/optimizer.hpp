// Optimizers of nn on a device.
#pragma once

#include <fast/cuda/memory.hpp>
#include <fast/nn/optimizer.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace fast::cuda {

/// nn::Optimizer with parameters, gradients and state in the memory of a device. A step is two
/// kernels: a small one stores the rule on the device, the other applies it. Results equal those of
/// nn::Optimizer except for rounding, because the device fuses multiply-adds. T is float or double.
template <class T>
class Optimizer {
 public:
  /// Throws Error(argument) as nn::Optimizer does, Error(resource) as DeviceBuffer does.
  Optimizer(nn::OptimizerSpec spec, std::size_t parameter_count, int device = 0);

  /// Enqueues parameters += δ. Both spans have parameter_count elements on the device of the
  /// stream, which must be that of the optimizer; else Error(argument).
  void step(std::span<T> parameters, std::span<const T> gradients, const Stream& stream);

  /// A step in two parts. begin_step() counts the step and stores its rule and learning rate on the
  /// device. apply() reads the rule there. A captured apply() can therefore be launched after every
  /// begin_step(), with any learning rate.
  void begin_step(const Stream& stream);
  void apply(std::span<T> parameters, std::span<const T> gradients, const Stream& stream) const;

  /// Unique in the process, also among optimizers that no longer exist.
  std::uint64_t id() const { return id_; }

  double learning_rate() const;
  /// Throws Error(argument) if it is negative or not finite.
  void set_learning_rate(double learning_rate);
  const nn::OptimizerSpec& spec() const { return spec_; }

  /// The state is as in nn::Optimizer. All but "adam.steps" lie on the device.
  std::vector<TensorView> state();

 private:
  T* slot(std::size_t index) const;
  void require_own(const Stream& stream) const;

  nn::OptimizerSpec spec_;
  std::size_t count_, slots_;
  int device_;
  std::uint64_t id_;
  std::int64_t steps_ = 0;
  DeviceBuffer rule_, state_;
};

extern template class Optimizer<float>;
extern template class Optimizer<double>;

}  // namespace fast::cuda
