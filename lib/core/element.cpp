#include <fast/core/element.hpp>

#include <bit>
#include <cmath>

namespace fast {

float to_float(BFloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

BFloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

float to_float(Float16 value) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1f;
  const std::uint32_t mantissa = value.bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: mantissa × 2⁻²⁴
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

Float16 to_float16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0F) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x1p-14F) {  // subnormal: the sum with 2⁻¹ × 2⁻¹³ rounds to multiples of 2⁻²⁴
    const float shifted = magnitude + 0.5F;
    return {
        static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000))};
  }
  const std::uint32_t absolute = bits & 0x7fffffff;
  const std::uint32_t rounded = absolute + 0xfff + ((absolute >> 13) & 1);
  return {static_cast<std::uint16_t>(sign | ((rounded - (112U << 23)) >> 13))};
}

std::size_t size_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i8:
    case DType::u8:
      return 1;
  }
  return 0;
}

std::string_view name(DType dtype) noexcept {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "f16", "i8", "u8", "i32", "i64"};
  return names[static_cast<std::size_t>(dtype)];
}

bool is_floating(DType dtype) noexcept { return dtype <= DType::f16; }

}  // namespace fast
