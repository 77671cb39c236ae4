// The numbers that the kernels of optimizers use on any device.
#pragma once

namespace fast::nn {

template <class T>
struct SgdRule {
  T learning_rate, momentum, weight_decay;
  bool nesterov;
};
template <class T>
struct AdamRule {
  T rate;                        // learning rate / (1 - beta1^t)
  T beta1, rest1, beta2, rest2;  // rest = 1 - beta
  T root_scale;                  // 1 / sqrt(1 - beta2^t)
  T epsilon;
  T added_decay, decoupled_decay;  // to the gradient; to delta, times the learning rate
};

}  // namespace fast::nn
