// The steps of optimizers for each element. Devices and the host compile them, so that tests need
// no device. The order of operations is that of nn's kernels, and the code names all fused
// multiply-adds.
#pragma once

#include "cuda/device/elements.hpp"
#include "nn/kernels/rule_values.hpp"

namespace fast::cuda {

/// w -= rate · m, the step of nn::SgdOptions. `momentum` may be null.
template <class T>
struct SgdUpdate {
  nn::SgdRule<T> rule;
  const T* gradients;
  T* momentum;

  template <int Width>
  FAST_HOST_DEVICE void operator()(std::size_t e, T (&weights)[Width]) const {
    T grad[Width], m[Width] = {};
    load(gradients + e, grad);
    if (momentum != nullptr) load(momentum + e, m);
    for (int i = 0; i < Width; ++i) {
      grad[i] = fused(rule.weight_decay, weights[i], grad[i]);
      m[i] = momentum == nullptr ? grad[i] : fused(rule.momentum, m[i], grad[i]);
      const T direction = rule.nesterov ? fused(rule.momentum, m[i], grad[i]) : m[i];
      weights[i] = fused(-rule.learning_rate, direction, weights[i]);
    }
    if (momentum != nullptr) store(m, momentum + e);
  }
};

/// The step of nn::AdamOptions: Adam and AdamW.
template <class T>
struct AdamUpdate {
  nn::AdamRule<T> rule;
  const T* gradients;
  T *first, *second;

  template <int Width>
  FAST_HOST_DEVICE void operator()(std::size_t e, T (&weights)[Width]) const {
    T grad[Width], m[Width], v[Width];
    load(gradients + e, grad);
    load(first + e, m);
    load(second + e, v);
    for (int i = 0; i < Width; ++i) {
      grad[i] = fused(rule.added_decay, weights[i], grad[i]);
      m[i] = fused(rule.beta1, m[i], rule.rest1 * grad[i]);
      v[i] = fused(rule.beta2, v[i], rule.rest2 * grad[i] * grad[i]);
      const T step = rule.rate * m[i] / fused(root(v[i]), rule.root_scale, rule.epsilon);
      weights[i] += fused(-rule.decoupled_decay, weights[i], -step);
    }
    store(m, first + e);
    store(v, second + e);
  }
};

/// Stores the rule of an optimizer in memory. Kernels that read it there can be captured once and
/// launched for steps with other learning rates and counts.
template <class Rule>
struct StoreRule {
  Rule rule;
  Rule* to;

  std::int64_t size() const { return 1; }
  FAST_HOST_DEVICE void at(std::int64_t) const { *to = rule; }
};

/// Updates weights[e] in place.
template <class T, class Update>
struct UpdateElements {
  T* weights;
  Update update;

  template <class Rule>
  FAST_HOST_DEVICE UpdateElements with(const Rule& rule) const {
    UpdateElements now = *this;
    now.update.rule = rule;
    return now;
  }

  template <int Width>
  FAST_HOST_DEVICE void at(std::size_t e) const {
    T x[Width];
    load(weights + e, x);
    update(e, x);
    store(x, weights + e);
  }
};

}  // namespace fast::cuda
