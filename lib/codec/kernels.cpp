#include "codec/kernels.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "codec/block.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/bfloat16-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fast::codec::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace core = fast::HWY_NAMESPACE;

/// body(d, e) over whole vectors of float, then over single elements.
template <class Body>
HWY_INLINE void for_floats(std::size_t count, const Body& body) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t e = 0;
  for (; e + lanes <= count; e += lanes) body(d, e);
  const hn::CappedTag<float, 1> one;
  for (; e < count; ++e) body(one, e);
}

void widen_bf16(float* HWY_RESTRICT to, const BFloat16* HWY_RESTRICT from, std::size_t count) {
  for_floats(count, [&](auto d, std::size_t e)
                        HWY_ATTR { hn::StoreU(core::load_bfloat16(d, from + e), d, to + e); });
}
void narrow_bf16(BFloat16* HWY_RESTRICT to, const float* HWY_RESTRICT from, std::size_t count) {
  for_floats(count, [&](auto d, std::size_t e)
                        HWY_ATTR { core::store_bfloat16(d, hn::LoadU(d, from + e), to + e); });
}

// Without instructions for them (F16C), halves go one by one.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
void widen_f16(float* HWY_RESTRICT to, const Float16* HWY_RESTRICT from, std::size_t count) {
  for_floats(count, [&](auto d, std::size_t e) HWY_ATTR {
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    const auto halves = hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from + e));
    hn::StoreU(hn::PromoteTo(d, halves), d, to + e);
  });
}
void narrow_f16(Float16* HWY_RESTRICT to, const float* HWY_RESTRICT from, std::size_t count) {
  for_floats(count, [&](auto d, std::size_t e) HWY_ATTR {
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    const auto halves = hn::DemoteTo(d16, hn::LoadU(d, from + e));
    hn::StoreU(halves, d16, reinterpret_cast<hwy::float16_t*>(to + e));
  });
}
#else
void widen_f16(float* to, const Float16* from, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) to[e] = to_float(from[e]);
}
void narrow_f16(Float16* to, const float* from, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) to[e] = to_float16(from[e]);
}
#endif

/// 32 random bits for each index from `first` on: lowbias32 (C. Wellons' search, 2018).
template <class D>
HWY_INLINE auto random_bits(D, std::uint32_t key, std::uint32_t first) {
  const hn::RebindToUnsigned<D> du;
  auto x = hn::Xor(hn::Add(hn::Iota(du, 0), hn::Set(du, first)), hn::Set(du, key));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x7feb352dU));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(du, 0x846ca68bU));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

void narrow_bf16_stochastically(BFloat16* HWY_RESTRICT to, const float* HWY_RESTRICT from,
                                std::size_t count, std::uint32_t key, std::uint32_t first) {
  for_floats(count, [&](auto d, std::size_t e) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    const hn::Rebind<std::uint16_t, decltype(d)> d16;
    const auto x = hn::LoadU(d, from + e);
    const auto random = random_bits(d, key, first + static_cast<std::uint32_t>(e));
    const auto low = hn::And(random, hn::Set(du, 0xffff));
    const auto finite = hn::RebindMask(du, hn::IsFinite(x));
    const auto bits = hn::Add(hn::BitCast(du, x), hn::IfThenElseZero(finite, low));
    hn::StoreU(core::upper_halves(d, x, bits), d16, reinterpret_cast<std::uint16_t*>(to + e));
  });
}

/// max |x + e| as the bits of a float; above those of infinity when there is a NaN. e becomes x +
/// e.
HWY_INLINE std::uint32_t add_up(float* HWY_RESTRICT error, const float* HWY_RESTRICT x,
                                std::size_t count) {
  const hn::ScalableTag<float> full;
  const hn::RebindToSigned<decltype(full)> di;
  const std::size_t lanes = hn::Lanes(full);
  const auto magnitude = [&](auto d, std::size_t e) HWY_ATTR {
    auto value = hn::LoadU(d, x + e);
    if (error != nullptr) {
      value = hn::Add(value, hn::LoadU(d, error + e));
      hn::StoreU(value, d, error + e);
    }
    return hn::BitCast(hn::RebindToSigned<decltype(d)>(), hn::Abs(value));
  };
  auto largest = hn::Zero(di), largest2 = hn::Zero(di);
  std::size_t e = 0;
  for (; e + 4 * lanes <= count; e += 4 * lanes) {
    largest = hn::Max(largest, hn::Max(magnitude(full, e), magnitude(full, e + lanes)));
    largest2 =
        hn::Max(largest2, hn::Max(magnitude(full, e + 2 * lanes), magnitude(full, e + 3 * lanes)));
  }
  std::int32_t most = hn::GetLane(hn::MaxOfLanes(di, hn::Max(largest, largest2)));
  const hn::CappedTag<float, 1> one;
  for (; e < count; ++e) most = std::max(most, hn::GetLane(magnitude(one, e)));
  return static_cast<std::uint32_t>(most);
}

/// Codes lie in words of four: byte k of word l of a run of 32 is that of element 8k + l, whatever
/// the length of vectors; then the rest in order.
constexpr std::size_t run_elements = 32;
using Words = hn::CappedTag<float, run_elements / 4>;

/// A float that has the code in its lowest byte: code + 1.5·2^23, which rounds to nearest even.
constexpr float shifted_zero = 0x1.8p23F;

template <class Round>
HWY_INLINE float quantize_with(std::int8_t* HWY_RESTRICT codes, const float* HWY_RESTRICT x,
                               float* HWY_RESTRICT error, std::size_t count, const Round& round) {
  const std::uint32_t largest_bits = add_up(error, x, count);
  const float largest = std::bit_cast<float>(largest_bits);
  const bool finite = largest_bits < 0x7f800000U;
  if (!finite || largest < 0x1p-118F) {  // 127/largest would overflow
    std::fill_n(codes, count, std::int8_t{0});
    if (finite) return 0;  // the error keeps what there is
    if (error != nullptr) std::fill_n(error, count, 0.0F);
    return std::numeric_limits<float>::quiet_NaN();
  }
  // The largest float's code is not to decode to infinity.
  const float scale = std::min(largest, 0x1.fffffp127F) / 127, inverse = 127 / largest;
  const float* from = error != nullptr ? error : x;
  const auto code = [&](auto d, std::size_t e) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto value = hn::LoadU(d, from + e);
    const auto shifted = round(d, value, hn::Set(d, inverse), e);
    if (error != nullptr) {
      const auto decoded = hn::Mul(hn::Sub(shifted, hn::Set(d, shifted_zero)), hn::Set(d, scale));
      hn::StoreU(hn::Sub(value, decoded), d, error + e);
    }
    return hn::BitCast(du, shifted);
  };
  const Words d;
  const hn::RebindToUnsigned<Words> du;
  const auto byte = hn::Set(du, 0xff);
  std::size_t e = 0;
  for (; e + run_elements <= count; e += run_elements) {
    for (std::size_t l = 0; l < 8; l += hn::Lanes(d)) {
      const auto low = hn::Or(hn::And(code(d, e + l), byte),
                              hn::ShiftLeft<8>(hn::And(code(d, e + l + 8), byte)));
      const auto high = hn::Or(hn::ShiftLeft<16>(hn::And(code(d, e + l + 16), byte)),
                               hn::ShiftLeft<24>(code(d, e + l + 24)));
      hn::StoreU(hn::Or(low, high), du, reinterpret_cast<std::uint32_t*>(codes + e + 4 * l));
    }
  }
  const hn::CappedTag<float, 1> one;
  for (; e < count; ++e) codes[e] = static_cast<std::int8_t>(hn::GetLane(code(one, e)));
  return scale;
}

float quantize_nearest(std::int8_t* codes, const float* x, float* error, std::size_t count) {
  const auto round = [](auto d, auto value, auto inverse, std::size_t)
                         HWY_ATTR { return hn::MulAdd(value, inverse, hn::Set(d, shifted_zero)); };
  if (error == nullptr) return quantize_with(codes, x, nullptr, count, round);
  return quantize_with(codes, x, error, count, round);
}
float quantize_random(std::int8_t* codes, const float* x, float* error, std::size_t count,
                      std::uint32_t key, std::uint32_t first) {
  const auto round = [&](auto d, auto value, auto inverse, std::size_t e) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const auto bits = random_bits(d, key, first + static_cast<std::uint32_t>(e));
    const auto top = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<8>(bits)));
    const auto uniform = hn::Mul(top, hn::Set(d, 0x1p-24F));
    const auto whole = hn::Floor(hn::MulAdd(value, inverse, uniform));
    return hn::Add(hn::Min(whole, hn::Set(d, 127.0F)), hn::Set(d, shifted_zero));
  };
  return quantize_with(codes, x, error, count, round);
}

void dequantize_all(float* HWY_RESTRICT to, const std::int8_t* HWY_RESTRICT codes, float scale,
                    std::size_t count) {
  const Words d;
  const hn::RebindToSigned<Words> di;
  const auto factor = hn::Set(d, scale);
  std::size_t e = 0;
  for (; e + run_elements <= count; e += run_elements) {
    for (std::size_t l = 0; l < 8; l += hn::Lanes(d)) {
      const auto word = hn::LoadU(di, reinterpret_cast<const std::int32_t*>(codes + e + 4 * l));
      const auto put = [&](auto code, std::size_t k) HWY_ATTR {
        const auto value = hn::ConvertTo(d, hn::ShiftRight<24>(code));
        hn::StoreU(hn::Mul(value, factor), d, to + e + l + 8 * k);
      };
      put(hn::ShiftLeft<24>(word), 0);
      put(hn::ShiftLeft<16>(word), 1);
      put(hn::ShiftLeft<8>(word), 2);
      put(word, 3);
    }
  }
  for (; e < count; ++e) to[e] = static_cast<float>(codes[e]) * scale;
}

}  // namespace fast::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fast::codec {

HWY_EXPORT(widen_bf16);
HWY_EXPORT(widen_f16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(narrow_f16);
HWY_EXPORT(narrow_bf16_stochastically);
HWY_EXPORT(quantize_nearest);
HWY_EXPORT(quantize_random);
HWY_EXPORT(dequantize_all);

void widen(float* to, const BFloat16* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(to, from, count);
}
void widen(float* to, const Float16* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_f16)(to, from, count);
}
void narrow(BFloat16* to, const float* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_bf16)(to, from, count);
}
void narrow(Float16* to, const float* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_f16)(to, from, count);
}
void narrow_stochastically(BFloat16* to, const float* from, std::size_t count, std::uint32_t key,
                           std::uint32_t first) {
  HWY_DYNAMIC_DISPATCH(narrow_bf16_stochastically)(to, from, count, key, first);
}
float quantize(std::int8_t* codes, const float* x, float* error, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(quantize_nearest)(codes, x, error, count);
}
float quantize_stochastically(std::int8_t* codes, const float* x, float* error, std::size_t count,
                              std::uint32_t key, std::uint32_t first) {
  return HWY_DYNAMIC_DISPATCH(quantize_random)(codes, x, error, count, key, first);
}
void dequantize(float* to, const std::int8_t* codes, float scale, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(dequantize_all)(to, codes, scale, count);
}

}  // namespace fast::codec
#endif  // HWY_ONCE
