// nn's optimizers on the device.
#pragma once

#include <fast/cuda/memory.hpp>
#include <fast/nn/optimizer.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace fast::cuda {

/// nn::Optimizer with parameters, gradients and state in a device's memory; each step is one
/// kernel, behind a small one that tells it the rule. Equal to it but for rounding: the device
/// fuses multiply-adds where the host's compiler may. T is float or double.
template <class T>
class Optimizer {
 public:
  /// Throws Error(argument) as nn::Optimizer does, Error(resource) as DeviceBuffer does.
  Optimizer(nn::OptimizerSpec spec, std::size_t parameter_count, int device = 0);

  /// parameters += δ, enqueued. Both of parameter_count elements on the stream's device, which is
  /// the optimizer's; else Error(argument).
  void step(std::span<T> parameters, std::span<const T> gradients, const Stream& stream);

  /// The same in two: begin_step() counts the step and leaves its rule, learning rate included, on
  /// the device, where apply() finds it. So a captured apply() may be launched after every
  /// begin_step(), of whatever learning rate.
  void begin_step(const Stream& stream);
  void apply(std::span<T> parameters, std::span<const T> gradients, const Stream& stream) const;

  /// No other optimizer of the process has it, whether that lives still or not.
  std::uint64_t id() const { return id_; }

  double learning_rate() const;
  /// Throws Error(argument) unless finite and not negative.
  void set_learning_rate(double learning_rate);
  const nn::OptimizerSpec& spec() const { return spec_; }

  /// As nn::Optimizer's, on the device but for "adam.steps".
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
