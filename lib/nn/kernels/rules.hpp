// The numbers of one optimizer step, from the options.
#pragma once

#include <cmath>
#include <cstdint>
#include <fast/nn/optimizer.hpp>

#include "nn/kernels/rule_values.hpp"

namespace fast::nn {

/// Throws Error(argument) on options that are not finite or out of range.
void require_valid(const OptimizerSpec& spec);

/// Number of values of state per parameter.
std::size_t state_slots(const OptimizerSpec& spec);

template <class T>
SgdRule<T> rule_of(const SgdOptions& o) {
  return {static_cast<T>(o.learning_rate), static_cast<T>(o.momentum),
          static_cast<T>(o.weight_decay), o.nesterov};
}

/// The first `step` is 1.
template <class T>
AdamRule<T> rule_of(const AdamOptions& o, std::int64_t step) {
  const auto t = static_cast<double>(step);
  const double first = 1 - std::pow(o.beta1, t), second = 1 - std::pow(o.beta2, t);
  return {static_cast<T>(o.learning_rate / first),
          static_cast<T>(o.beta1),
          static_cast<T>(1 - o.beta1),
          static_cast<T>(o.beta2),
          static_cast<T>(1 - o.beta2),
          static_cast<T>(1 / std::sqrt(second)),
          static_cast<T>(o.epsilon),
          static_cast<T>(o.decoupled_decay ? 0 : o.weight_decay),
          static_cast<T>(o.decoupled_decay ? o.learning_rate * o.weight_decay : 0)};
}

}  // namespace fast::nn
