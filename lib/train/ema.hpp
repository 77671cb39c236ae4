// An exponential moving average of a replica's weights.
#pragma once

#include <fast/core/layout.hpp>
#include <fast/core/memory.hpp>

#include <memory>

#include "combine/accelerator.hpp"

namespace fast::train {

/// Of f32 and f64 tensors; others keep their newest value. The average is in the memory of the
/// weights: the host's or a device's.
class Ema {
 public:
  /// Begins with the weights as they are; `accelerator` is that of tensors on a device, else null.
  Ema(const ParameterLayout& layout, double decay,
      std::shared_ptr<Accelerator> accelerator = nullptr);

  /// After a step: average ← d average + (1-d) weights. In step t d is at most (1+t)/(10+t), so
  /// that the initial weights count little even in a short run.
  void update(const ParameterLayout& layout);

  const AlignedBuffer& packed();
  /// For checkpoints.
  std::vector<TensorView> state();
  /// To be called when the views of state() have been written to.
  void take_state();

 private:
  void transfer(std::byte* to, const std::byte* from) const;

  double decay_;
  AlignedBuffer average_;  ///< of weights on a device: a copy in host memory
  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<std::byte> on_device_;
  double steps_ = 0;
};

}  // namespace fast::train
