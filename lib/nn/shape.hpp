// Shapes, and requirements of layers on the shape of their input.
#pragma once

#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <variant>

namespace fast::nn {

inline std::int64_t elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// As the public function of this name. Error messages start with `where`.
std::vector<Shape> shapes_through(const std::vector<LayerSpec>& layers, const Shape& input,
                                  const std::string& where);

template <class... Args>
void demand(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  require(condition, ErrorKind::argument, format, std::forward<Args>(args)...);
}

inline void demand_image(const Shape& in) {
  demand(in.size() == 3, "it takes images [channels x height x width], its input is {}",
         describe(in));
}

inline void demand_sequence(const Shape& in) {
  demand(in.size() == 2, "it takes sequences [steps x features], its input is {}", describe(in));
}

/// A window that moves along each side of a padded input.
struct Window {
  std::int64_t size, stride, padding;

  void demand_valid() const {
    demand(size > 0 && stride > 0 && padding >= 0,
           "sizes and strides must be positive, padding not negative");
    demand(padding < size, "padding must be smaller than the kernel");
  }
  bool fits(std::int64_t length) const { return length + 2 * padding >= size; }
  /// Throws Error(argument) when a square window does not fit the image.
  void demand_fit(const Shape& in) const {
    demand_image(in);
    demand_valid();
    demand(fits(in[1]) && fits(in[2]), "its window is larger than its input {}", describe(in));
  }
  /// The number of windows along a side of `length`.
  std::int64_t along(std::int64_t length) const {
    return (length + 2 * padding - size) / stride + 1;
  }
};

// Tokens: whole numbers that an Embedding takes in place of values.

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
