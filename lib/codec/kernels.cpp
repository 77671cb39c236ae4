#include "codec/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fast/codec/block.hpp>
#include <limits>

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
  auto x = hn::Xor(hn::Iota(du, first), hn::Set(du, key));
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
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d);
  auto largest = hn::Zero(di);
  std::size_t e = 0;
  for (; e + lanes <= count; e += lanes) {
    auto value = hn::LoadU(d, x + e);
    if (error != nullptr) {
      value = hn::Add(value, hn::LoadU(d, error + e));
      hn::StoreU(value, d, error + e);
    }
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(value)));
  }
  std::int32_t most = hn::GetLane(hn::MaxOfLanes(di, largest));
  const hn::CappedTag<float, 1> one;
  const hn::RebindToSigned<decltype(one)> one_int;
  for (; e < count; ++e) {
    float value = x[e];
    if (error != nullptr) value = error[e] += value;
    const auto magnitude = hn::Abs(hn::LoadU(one, &value));
    most = std::max(most, hn::GetLane(hn::BitCast(one_int, magnitude)));
  }
  return static_cast<std::uint32_t>(most);
}

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
  for_floats(count, [&](auto d, std::size_t e) HWY_ATTR {
    const hn::Rebind<std::int8_t, decltype(d)> d8;
    const auto value = hn::LoadU(d, from + e);
    const auto code = hn::DemoteTo(d8, round(d, hn::Mul(value, hn::Set(d, inverse)), e));
    hn::StoreU(code, d8, codes + e);
    if (error == nullptr) return;
    const hn::RebindToSigned<decltype(d)> di;
    const auto decoded = hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, code)), hn::Set(d, scale));
    hn::StoreU(hn::Sub(value, decoded), d, error + e);
  });
  return scale;
}

float quantize_nearest(std::int8_t* codes, const float* x, float* error, std::size_t count) {
  return quantize_with(codes, x, error, count, [](auto, auto value, std::size_t) HWY_ATTR {
    return hn::NearestInt(value);
  });
}
float quantize_random(std::int8_t* codes, const float* x, float* error, std::size_t count,
                      std::uint32_t key, std::uint32_t first) {
  return quantize_with(codes, x, error, count, [&](auto d, auto value, std::size_t e) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const auto bits = random_bits(d, key, first + static_cast<std::uint32_t>(e));
    const auto top = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<8>(bits)));
    const auto uniform = hn::Mul(top, hn::Set(d, 0x1p-24F));
    return hn::ConvertTo(di, hn::Floor(hn::Add(value, uniform)));
  });
}

void dequantize_all(float* HWY_RESTRICT to, const std::int8_t* HWY_RESTRICT codes, float scale,
                    std::size_t count) {
  for_floats(count, [&](auto d, std::size_t e) HWY_ATTR {
    const hn::Rebind<std::int8_t, decltype(d)> d8;
    const hn::RebindToSigned<decltype(d)> di;
    const auto code = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, codes + e)));
    hn::StoreU(hn::Mul(code, hn::Set(d, scale)), d, to + e);
  });
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
