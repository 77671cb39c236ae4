// bfloat16 in vectors of float, for kernels of any target of Highway's foreach_target: include
// after <hwy/highway.h>, once per target.
#if defined(FAST_CORE_BFLOAT16_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FAST_CORE_BFLOAT16_INL
#undef FAST_CORE_BFLOAT16_INL
#else
#define FAST_CORE_BFLOAT16_INL
#endif

#include <fast/core/element.hpp>

HWY_BEFORE_NAMESPACE();
namespace fast::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Lanes(d) elements at `from`, D a tag of float.
template <class D>
HWY_INLINE hn::Vec<D> load_bfloat16(D d, const BFloat16* from) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

/// The upper halves of `bits`, which are to be those of floats; NaN where `x` is.
template <class D, class B>
HWY_INLINE auto upper_halves(D, hn::Vec<D> x, B bits) {
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> di32;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto quiet = hn::Or(hn::BitCast(d32, x), hn::Set(d32, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(x)), quiet, bits);
  return hn::DemoteTo(d16, hn::BitCast(di32, hn::ShiftRight<16>(chosen)));
}

/// Rounded to nearest even: half as many bytes as `x`.
template <class D>
HWY_INLINE auto bfloat16_bits(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, x);
  const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  return upper_halves(d, x, hn::Add(bits, hn::Add(even, hn::Set(d32, 0x7fff))));
}

template <class D>
HWY_INLINE void store_bfloat16(D d, hn::Vec<D> x, BFloat16* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  hn::StoreU(bfloat16_bits(d, x), d16, reinterpret_cast<std::uint16_t*>(to));
}

}  // namespace fast::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
