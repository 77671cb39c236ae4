// Loops over tensors of any floating-point type.
#pragma once

#include <fast/core/element.hpp>
#include <fast/core/error.hpp>
#include <type_traits>

namespace fast {

template <class T>
double as_double(T value) {
  if constexpr (requires { to_float(value); }) {
    return to_float(value);
  } else {
    return value;
  }
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// Returns visit(T{}) for the C++ type T of a floating-point type.
template <class Visit>
auto with_floating(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(float{});
    case DType::f64:
      return visit(double{});
    case DType::bf16:
      return visit(BFloat16{});
    case DType::f16:
      return visit(Float16{});
    default:
      fail(ErrorKind::internal, "{} is no floating-point type", name(dtype));
  }
}

}  // namespace fast
