#include <fast/core/memory.hpp>
#include <fast/mixing/kernels.hpp>

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mixing/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/bfloat16-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fast::mixing::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace core = fast::HWY_NAMESPACE;

/// Calls vector(d, e) over whole vectors and scalar(cap1, e) over the rest, so that each kernel is
/// written once.
template <class T, class Body>
HWY_INLINE void for_elements(std::size_t begin, std::size_t count, const Body& body) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t e = begin;
  for (; e + lanes <= count; e += lanes) body(d, e);
  const hn::CappedTag<T, 1> one;
  for (; e < count; ++e) body(one, e);
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const BFloat16* from) {
  return core::load_bfloat16(d, from);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> x, hn::TFromD<D>* to) {
  hn::StoreU(x, d, to);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> x, BFloat16* to) {
  core::store_bfloat16(d, x, to);
}

/// Sum of w_j (m_j - own) on top of `sum`. Degree > 0 unrolls the neighbors.
template <int Degree, class D, class V, class T, class Stored>
HWY_INLINE V add_differences(D d, V sum, V own, const Stored* const* values, const T* weights,
                             std::size_t degree, std::size_t e) {
  const std::size_t end = Degree > 0 ? Degree : degree;
  for (std::size_t j = 0; j < end; ++j) {
    sum = hn::MulAdd(hn::Set(d, weights[j]), hn::Sub(load(d, values[j] + e), own), sum);
  }
  return sum;
}

template <int Degree, class T>
HWY_INLINE void weighted_differences_of(T* HWY_RESTRICT out, const T* HWY_RESTRICT own,
                                        const T* const* values, const T* weights,
                                        std::size_t degree, std::size_t count) {
  for_elements<T>(0, count, [&](auto d, std::size_t e) HWY_ATTR {
    hn::StoreU(
        add_differences<Degree>(d, hn::Zero(d), hn::LoadU(d, own + e), values, weights, degree, e),
        d, out + e);
  });
}

template <class T>
void weighted_differences_any(T* out, const T* own, const T* const* values, const T* weights,
                              std::size_t degree, std::size_t count) {
  switch (degree) {
    case 1:
      return weighted_differences_of<1>(out, own, values, weights, degree, count);
    case 2:
      return weighted_differences_of<2>(out, own, values, weights, degree, count);
    case 4:
      return weighted_differences_of<4>(out, own, values, weights, degree, count);
    default:
      return weighted_differences_of<0>(out, own, values, weights, degree, count);
  }
}

template <class T>
void weighted_sum_any(T* HWY_RESTRICT out, const T* const* values, const T* weights,
                      std::size_t degree, std::size_t count) {
  for_elements<T>(0, count, [&](auto d, std::size_t e) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::size_t j = 0; j < degree; ++j) {
      sum = hn::MulAdd(hn::Set(d, weights[j]), hn::LoadU(d, values[j] + e), sum);
    }
    hn::StoreU(sum, d, out + e);
  });
}

/// All ones in the lanes that are not finite: there the bits of the exponent are all set.
template <class D, class V>
HWY_INLINE auto not_finite(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const auto exponent = hn::BitCast(du, hn::Inf(d));
  return hn::VecFromMask(du, hn::Eq(hn::And(hn::BitCast(du, x), exponent), exponent));
}

template <class DU, class V>
HWY_INLINE bool none_set(DU du, V lanes) {
  return hn::AllTrue(du, hn::Eq(lanes, hn::Zero(du)));
}

/// Elements before the first that a streaming store may start at.
template <class T>
std::size_t misaligned(const T* pointer, std::size_t count) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(pointer) % cache_line_bytes;
  const std::size_t head = beyond == 0 ? 0 : (cache_line_bytes - beyond) / sizeof(T);
  return head < count ? head : count;
}

/// Fills the elements of one streaming store with make(d, e); returns how many they are. Sets lanes
/// of `bad` that are not finite.
template <class T, class Make, class Bad>
HWY_INLINE std::size_t stream_next(T* to, std::size_t e, const Make& make, Bad& bad) {
  const hn::ScalableTag<T> d;
  const auto x = make(d, e);
  bad = hn::Or(bad, not_finite(d, x));
  hn::Stream(x, d, to + e);
  return hn::Lanes(d);
}
template <class Make, class Bad>
HWY_INLINE std::size_t stream_next(BFloat16* to, std::size_t e, const Make& make, Bad& bad) {
  const hn::ScalableTag<float> d;
  const auto x = make(d, e);
  bad = hn::Or(bad, not_finite(d, x));
#if HWY_TARGET == HWY_SCALAR
  core::store_bfloat16(d, x, to + e);
  return 1;
#else
  const hn::ScalableTag<std::uint16_t> d16;
  const auto y = make(d, e + hn::Lanes(d));
  bad = hn::Or(bad, not_finite(d, y));
  const auto low = core::bfloat16_bits(d, x);
  const auto high = core::bfloat16_bits(d, y);
  hn::Stream(hn::Combine(d16, high, low), d16, reinterpret_cast<std::uint16_t*>(to + e));
  return hn::Lanes(d16);
#endif
}

/// Many streams at once are more than the processor foresees by itself. Lines that are further
/// ahead displace each other in the first cache before they are used. Slots of different workers
/// lie further apart in their pages, see exchange::SlotLayout.
template <class T>
HWY_INLINE void prefetch(const T* from) {
  constexpr std::size_t ahead_bytes = 384;
  __builtin_prefetch(reinterpret_cast<const char*>(from) + ahead_bytes);
}

/// The averages from `from` on, to `to` in plain stores and to `next` in streaming stores: either
/// may be null. Without `next`, the differences are summed before they are added. `Stored`, the
/// type of slots, may be narrower than that of the model. Without `from` the weights are `own`.
/// Whether all results are finite.
template <int Degree, class T, class Stored>
HWY_INLINE bool average_of(T* to, const T* from, Stored* HWY_RESTRICT next,
                           const Stored* HWY_RESTRICT own, const Stored* const* values,
                           const T* weights, std::size_t degree, std::size_t count) {
  const auto combine = [&](auto d, std::size_t e) HWY_ATTR {
    const auto m = load(d, own + e);
    const auto w = from == nullptr ? m : hn::LoadU(d, from + e);
    const auto x =
        next != nullptr
            ? add_differences<Degree>(d, w, m, values, weights, degree, e)
            : hn::Add(w, add_differences<Degree>(d, hn::Zero(d), m, values, weights, degree, e));
    if (to != nullptr) hn::StoreU(x, d, to + e);
    return x;
  };
  bool finite = true;
  const auto plainly = [&](auto d, std::size_t e) HWY_ATTR {
    const auto x = combine(d, e);
    finite = hn::AllTrue(d, hn::IsFinite(x)) && finite;
    if (next != nullptr) store(d, x, next + e);
  };
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  auto bad = hn::Zero(du);
  const std::size_t head = next == nullptr ? 0 : misaligned(next, count);
  for_elements<T>(0, head, plainly);
  const std::size_t at_once = hn::Lanes(d) * (sizeof(T) / sizeof(Stored));
  std::size_t e = head;
  while (e + at_once <= count) {
    if ((e - head) % (cache_line_bytes / sizeof(Stored)) == 0) {
      const std::size_t end = Degree > 0 ? Degree : degree;
      prefetch(own + e);
      if (from != nullptr) prefetch(from + e);
      for (std::size_t j = 0; j < end; ++j) prefetch(values[j] + e);
    }
    if (next != nullptr) {
      e += stream_next(next, e, combine, bad);
    } else {
      bad = hn::Or(bad, not_finite(d, combine(d, e)));
      e += hn::Lanes(d);
    }
  }
  for_elements<T>(e, count, plainly);
  return none_set(du, bad) && finite;
}

template <class T, class Stored>
bool average_any(T* to, const T* from, Stored* next, const Stored* own, const Stored* const* values,
                 const T* weights, std::size_t degree, std::size_t count) {
  switch (degree) {
    case 1:
      return average_of<1>(to, from, next, own, values, weights, degree, count);
    case 2:
      return average_of<2>(to, from, next, own, values, weights, degree, count);
    case 4:
      return average_of<4>(to, from, next, own, values, weights, degree, count);
    case 8:
      return average_of<8>(to, from, next, own, values, weights, degree, count);
    default:
      return average_of<0>(to, from, next, own, values, weights, degree, count);
  }
}

void stream_copy_bytes(std::uint8_t* HWY_RESTRICT to, const std::uint8_t* HWY_RESTRICT from,
                       std::size_t count) {
  if (count == 0) return;  // memcpy takes no null pointers
  const std::size_t head = misaligned(to, count);
  std::memcpy(to, from, head);
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t e = head;
  for (; e + lanes <= count; e += lanes) hn::Stream(hn::LoadU(d, from + e), d, to + e);
  std::memcpy(to + e, from + e, count - e);
}

double squared_distance_f32(const float* a, const float* b, std::size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  auto sum = hn::Zero(d);
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= count; e += hn::Lanes(d)) {
    const auto difference =
        hn::Sub(hn::PromoteTo(d, hn::LoadU(half, a + e)), hn::PromoteTo(d, hn::LoadU(half, b + e)));
    sum = hn::MulAdd(difference, difference, sum);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; e < count; ++e) total += (double{a[e]} - b[e]) * (double{a[e]} - b[e]);
  return total;
}

double squared_distance_f64(const double* a, const double* b, std::size_t count) {
  const hn::ScalableTag<double> d;
  auto sum = hn::Zero(d);
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= count; e += hn::Lanes(d)) {
    const auto difference = hn::Sub(hn::LoadU(d, a + e), hn::LoadU(d, b + e));
    sum = hn::MulAdd(difference, difference, sum);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; e < count; ++e) total += (a[e] - b[e]) * (a[e] - b[e]);
  return total;
}

/// Values as vectors of doubles.
template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const float* from) {
  const hn::Rebind<float, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, from));
}
template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const double* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE void store_doubles([[maybe_unused]] D d, hn::Vec<D> x, float* to) {
  const hn::Rebind<float, D> half;
  hn::StoreU(hn::DemoteTo(half, x), half, to);
}
template <class D>
HWY_INLINE void store_doubles(D d, hn::Vec<D> x, double* to) {
  hn::StoreU(x, d, to);
}

/// All sources are read at once, so that the sums are loaded and stored once.
template <class T>
HWY_INLINE void add_any(double* HWY_RESTRICT sums, const T* const* values, std::size_t sources,
                        std::size_t count) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t e = 0;
  for (; e + 2 * lanes <= count; e += 2 * lanes) {
    auto even = hn::LoadU(d, sums + e), odd = hn::LoadU(d, sums + e + lanes);
    for (std::size_t j = 0; j < sources; ++j) {
      prefetch(values[j] + e);
      even = hn::Add(even, load_doubles(d, values[j] + e));
      odd = hn::Add(odd, load_doubles(d, values[j] + e + lanes));
    }
    hn::StoreU(even, d, sums + e);
    hn::StoreU(odd, d, sums + e + lanes);
  }
  for (; e < count; ++e) {
    for (std::size_t j = 0; j < sources; ++j) sums[e] += static_cast<double>(values[j][e]);
  }
}

/// Differences of one source from `origin`, and their squares, of two vectors of elements apart.
template <class T>
HWY_INLINE void add_differences_of(double* HWY_RESTRICT sums, const T* values, const T* origin,
                                   std::size_t count, double* even_and_odd, double& rest) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto difference_at = [&](std::size_t e) HWY_ATTR {
    const auto difference = hn::Sub(load_doubles(d, values + e), load_doubles(d, origin + e));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + e), difference), d, sums + e);
    return difference;
  };
  auto even = hn::LoadU(d, even_and_odd), odd = hn::LoadU(d, even_and_odd + lanes);
  std::size_t e = 0;
  for (; e + 2 * lanes <= count; e += 2 * lanes) {
    prefetch(values + e);
    const auto here = difference_at(e), beside = difference_at(e + lanes);
    even = hn::MulAdd(here, here, even);
    odd = hn::MulAdd(beside, beside, odd);
  }
  hn::StoreU(even, d, even_and_odd);
  hn::StoreU(odd, d, even_and_odd + lanes);
  for (; e < count; ++e) {
    const double difference = static_cast<double>(values[e]) - static_cast<double>(origin[e]);
    sums[e] += difference;
    rest += difference * difference;
  }
}

/// The squares of each source are summed apart, and added in order: the bits do not depend on how
/// many are given at once. So many elements are taken source by source: their sums stay in the
/// first cache.
template <class T>
HWY_INLINE double add_differences_any(double* HWY_RESTRICT sums, double total,
                                      const T* const* values, std::size_t sources, const T* origin,
                                      std::size_t count) {
  constexpr std::size_t at_once = 512, most = 16;
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t begin = 0; begin < sources; begin += most) {
    HWY_ALIGN double squares[most][2 * hn::MaxLanes(d)] = {};
    double rest[most] = {};
    const std::size_t several = sources - begin < most ? sources - begin : most;
    for (std::size_t first = 0; first < count; first += at_once) {
      const std::size_t length = count - first < at_once ? count - first : at_once;
      for (std::size_t j = 0; j < several; ++j)
        add_differences_of(sums + first, values[begin + j] + first, origin + first, length,
                           squares[j], rest[j]);
    }
    for (std::size_t j = 0; j < several; ++j) {
      const auto both = hn::Add(hn::LoadU(d, squares[j]), hn::LoadU(d, squares[j] + lanes));
      total += hn::GetLane(hn::SumOfLanes(d, both)) + rest[j];
    }
  }
  return total;
}

template <class T>
HWY_INLINE void divide_any(T* HWY_RESTRICT out, const double* HWY_RESTRICT sums, double divisor,
                           std::size_t count) {
  for_elements<double>(0, count, [&](auto d, std::size_t e) HWY_ATTR {
    store_doubles(d, hn::Div(hn::LoadU(d, sums + e), hn::Set(d, divisor)), out + e);
  });
}

double sum_of_squares_f64(const double* values, std::size_t count) {
  const hn::ScalableTag<double> d;
  auto sum = hn::Zero(d);
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= count; e += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, values + e);
    sum = hn::MulAdd(x, x, sum);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; e < count; ++e) total += values[e] * values[e];
  return total;
}

template <class T>
bool all_finite_any(const T* values, std::size_t count) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const std::size_t lanes = hn::Lanes(d);
  auto bad = hn::Zero(du), bad2 = hn::Zero(du);
  std::size_t e = 0;
  for (; e + 2 * lanes <= count; e += 2 * lanes) {
    bad = hn::Or(bad, not_finite(d, hn::LoadU(d, values + e)));
    bad2 = hn::Or(bad2, not_finite(d, hn::LoadU(d, values + e + lanes)));
  }
  const hn::CappedTag<T, 1> one;
  bool finite = none_set(du, hn::Or(bad, bad2));
  for (; e < count; ++e)
    finite = hn::AllTrue(one, hn::IsFinite(hn::LoadU(one, values + e))) && finite;
  return finite;
}

void weighted_differences_f32(float* o, const float* x, const float* const* v, const float* w,
                              std::size_t degree, std::size_t n) {
  weighted_differences_any(o, x, v, w, degree, n);
}
void weighted_differences_f64(double* o, const double* x, const double* const* v, const double* w,
                              std::size_t degree, std::size_t n) {
  weighted_differences_any(o, x, v, w, degree, n);
}
void weighted_sum_f32(float* o, const float* const* v, const float* w, std::size_t degree,
                      std::size_t n) {
  weighted_sum_any(o, v, w, degree, n);
}
void weighted_sum_f64(double* o, const double* const* v, const double* w, std::size_t degree,
                      std::size_t n) {
  weighted_sum_any(o, v, w, degree, n);
}
bool average_f32(float* to, const float* c, float* next, const float* x, const float* const* v,
                 const float* w, std::size_t degree, std::size_t n) {
  return average_any(to, c, next, x, v, w, degree, n);
}
bool average_f64(double* to, const double* c, double* next, const double* x, const double* const* v,
                 const double* w, std::size_t degree, std::size_t n) {
  return average_any(to, c, next, x, v, w, degree, n);
}
bool average_bf16(float* to, const float* c, BFloat16* next, const BFloat16* x,
                  const BFloat16* const* v, const float* w, std::size_t degree, std::size_t n) {
  return average_any(to, c, next, x, v, w, degree, n);
}
void add_f32(double* s, const float* const* v, std::size_t k, std::size_t n) {
  add_any(s, v, k, n);
}
void add_f64(double* s, const double* const* v, std::size_t k, std::size_t n) {
  add_any(s, v, k, n);
}
double add_differences_f32(double* s, double q, const float* const* v, std::size_t k,
                           const float* o, std::size_t n) {
  return add_differences_any(s, q, v, k, o, n);
}
double add_differences_f64(double* s, double q, const double* const* v, std::size_t k,
                           const double* o, std::size_t n) {
  return add_differences_any(s, q, v, k, o, n);
}
void divide_f32(float* o, const double* s, double by, std::size_t n) { divide_any(o, s, by, n); }
void divide_f64(double* o, const double* s, double by, std::size_t n) { divide_any(o, s, by, n); }
bool all_finite_f32(const float* v, std::size_t n) { return all_finite_any(v, n); }
bool all_finite_f64(const double* v, std::size_t n) { return all_finite_any(v, n); }

}  // namespace fast::mixing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/cache_control.h>
namespace fast::mixing {

HWY_EXPORT(weighted_differences_f32);
HWY_EXPORT(weighted_differences_f64);
HWY_EXPORT(weighted_sum_f32);
HWY_EXPORT(weighted_sum_f64);
HWY_EXPORT(average_f32);
HWY_EXPORT(average_f64);
HWY_EXPORT(average_bf16);
HWY_EXPORT(stream_copy_bytes);
HWY_EXPORT(squared_distance_f32);
HWY_EXPORT(squared_distance_f64);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);
HWY_EXPORT(add_differences_f32);
HWY_EXPORT(add_differences_f64);
HWY_EXPORT(divide_f32);
HWY_EXPORT(divide_f64);
HWY_EXPORT(sum_of_squares_f64);
HWY_EXPORT(all_finite_f32);
HWY_EXPORT(all_finite_f64);

void weighted_differences(float* out, const float* own, std::span<const float* const> values,
                          std::span<const float> weights, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(weighted_differences_f32)
  (out, own, values.data(), weights.data(), values.size(), count);
}
void weighted_differences(double* out, const double* own, std::span<const double* const> values,
                          std::span<const double> weights, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(weighted_differences_f64)
  (out, own, values.data(), weights.data(), values.size(), count);
}
void weighted_sum(float* out, std::span<const float* const> values, std::span<const float> weights,
                  std::size_t count) {
  HWY_DYNAMIC_DISPATCH(weighted_sum_f32)(out, values.data(), weights.data(), values.size(), count);
}
void weighted_sum(double* out, std::span<const double* const> values,
                  std::span<const double> weights, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(weighted_sum_f64)(out, values.data(), weights.data(), values.size(), count);
}
bool average(float* current, float* next, const float* own, std::span<const float* const> values,
             std::span<const float> weights, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(average_f32)(current, current, next, own, values.data(),
                                           weights.data(), values.size(), count);
}
bool average(double* current, double* next, const double* own,
             std::span<const double* const> values, std::span<const double> weights,
             std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(average_f64)(current, current, next, own, values.data(),
                                           weights.data(), values.size(), count);
}
bool average(float* current, BFloat16* next, const BFloat16* own,
             std::span<const BFloat16* const> values, std::span<const float> weights,
             std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(average_bf16)(current, current, next, own, values.data(),
                                            weights.data(), values.size(), count);
}
bool average_apart(float* out, const float* current, const float* own,
                   std::span<const float* const> values, std::span<const float> weights,
                   std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(average_f32)(out, current, nullptr, own, values.data(),
                                           weights.data(), values.size(), count);
}
bool average_apart(double* out, const double* current, const double* own,
                   std::span<const double* const> values, std::span<const double> weights,
                   std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(average_f64)(out, current, nullptr, own, values.data(),
                                           weights.data(), values.size(), count);
}
bool average_apart(float* out, const float* current, const BFloat16* own,
                   std::span<const BFloat16* const> values, std::span<const float> weights,
                   std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(average_bf16)(out, current, nullptr, own, values.data(),
                                            weights.data(), values.size(), count);
}
void stream_copy(void* to, const void* from, std::size_t size_bytes) {
  HWY_DYNAMIC_DISPATCH(stream_copy_bytes)
  (static_cast<std::uint8_t*>(to), static_cast<const std::uint8_t*>(from), size_bytes);
}
void stream_fence() noexcept { hwy::FlushStream(); }

double squared_distance(const float* a, const float* b, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(squared_distance_f32)(a, b, count);
}
double squared_distance(const double* a, const double* b, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(squared_distance_f64)(a, b, count);
}
void add(double* sums, std::span<const float* const> values, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add_f32)(sums, values.data(), values.size(), count);
}
void add(double* sums, std::span<const double* const> values, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add_f64)(sums, values.data(), values.size(), count);
}
double add_differences(double* sums, double squares, std::span<const float* const> values,
                       const float* origin, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(add_differences_f32)(sums, squares, values.data(), values.size(),
                                                   origin, count);
}
double add_differences(double* sums, double squares, std::span<const double* const> values,
                       const double* origin, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(add_differences_f64)(sums, squares, values.data(), values.size(),
                                                   origin, count);
}
void divide(float* out, const double* sums, double divisor, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(divide_f32)(out, sums, divisor, count);
}
void divide(double* out, const double* sums, double divisor, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(divide_f64)(out, sums, divisor, count);
}
double sum_of_squares(const double* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares_f64)(values, count);
}
bool all_finite(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(all_finite_f32)(values, count);
}
bool all_finite(const double* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(all_finite_f64)(values, count);
}

}  // namespace fast::mixing
#endif  // HWY_ONCE
