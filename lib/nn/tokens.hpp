// Tokens: whole numbers that an Embedding takes in place of values.
#pragma once

#include <fast/nn/model_spec.hpp>

#include <cmath>
#include <cstdint>
#include <variant>

namespace fast::nn {

/// How many tokens the model has; 0: it takes values.
inline std::int64_t tokens_of(const ModelSpec& spec) {
  const auto* first = spec.layers.empty() ? nullptr : std::get_if<Embedding>(&spec.layers.front());
  return first == nullptr ? 0 : first->tokens;
}

/// Whether the value is a whole number from 0 to tokens - 1.
inline bool is_token(double value, std::int64_t tokens) {
  return value >= 0 && value < static_cast<double>(tokens) && value == std::trunc(value);
}

}  // namespace fast::nn
