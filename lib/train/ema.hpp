// An exponential moving average of a replica's weights.
#pragma once

#include <fast/core/layout.hpp>
#include <fast/core/memory.hpp>

namespace fast::train {

/// Of f32 and f64 tensors; others keep their newest value.
class Ema {
 public:
  /// Begins with the weights as they stand.
  Ema(const ParameterLayout& layout, double decay);

  /// After a step: average ← d average + (1-d) weights. In step t d is at most (1+t)/(10+t), so
  /// that a short run forgets where it began.
  void update(const ParameterLayout& layout);

  const AlignedBuffer& packed() const { return average_; }
  /// For checkpoints.
  std::vector<TensorView> state();

 private:
  double decay_;
  AlignedBuffer average_, weights_;
  double steps_ = 0;
};

}  // namespace fast::train
