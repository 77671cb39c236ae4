#include <cmath>
#include <cstring>
#include <fast/core/element.hpp>
#include <limits>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("every binary16 value survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      CHECK(std::isnan(to_float(to_float16(value))));
    } else if (to_float16(value).bits != half.bits) {
      FAIL("bits " << bits << " became " << to_float16(value).bits);
    }
  }
}

TEST_CASE("every bfloat16 value survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 half{static_cast<std::uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      CHECK(std::isnan(to_float(to_bfloat16(value))));
    } else if (to_bfloat16(value).bits != half.bits) {
      FAIL("bits " << bits << " became " << to_bfloat16(value).bits);
    }
  }
}

TEST_CASE("16-bit conversions round to nearest, ties to even") {
  CHECK(to_float(to_bfloat16(1.0F + 0x1p-8F)) == 1.0F);
  CHECK(to_float(to_bfloat16(1.0F + 3 * 0x1p-8F)) == 1.0F + 0x1p-6F);
  CHECK(to_float(to_float16(1.0F + 0x1p-11F)) == 1.0F);
  CHECK(to_float(to_float16(1.0F + 3 * 0x1p-11F)) == 1.0F + 0x1p-9F);
  CHECK(to_float(to_float16(65519.0F)) == 65504.0F);
  CHECK(std::isinf(to_float(to_float16(65520.0F))));
  CHECK(to_float(to_float16(0x1p-25F)) == 0.0F);
  CHECK(to_float(to_float16(0x1.8p-25F)) == 0x1p-24F);
  CHECK(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::infinity()))));
  CHECK(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::max()))));
}

TEST_CASE("dtypes know their size and name") {
  CHECK(size_bytes(DType::f32) == 4);
  CHECK(size_bytes(DType::bf16) == 2);
  CHECK(name(DType::f64) == "f64");
  CHECK(is_floating(DType::f16));
  CHECK_FALSE(is_floating(DType::i64));
}
