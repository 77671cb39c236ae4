// Element types of tensors and the 16-bit floating-point storage types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fast {

/// bfloat16 storage: the upper half of an IEEE binary32. Conversions round to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;
};

/// IEEE binary16 storage. Conversions round to nearest even; too large becomes infinity.
struct Float16 {
  std::uint16_t bits = 0;
};

float to_float(BFloat16 value) noexcept;
float to_float(Float16 value) noexcept;
BFloat16 to_bfloat16(float value) noexcept;
Float16 to_float16(float value) noexcept;

enum class DType : std::uint8_t { f32, f64, bf16, f16, i8, u8, i32, i64 };

std::size_t size_bytes(DType dtype) noexcept;
std::string_view name(DType dtype) noexcept;
/// f32, f64, bf16 or f16: the types that are averaged. Others stay with their worker.
bool is_floating(DType dtype) noexcept;

/// An error of the compiler for other types.
template <class T>
inline constexpr DType dtype_of = T::is_no_element;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<Float16> = DType::f16;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;

}  // namespace fast
