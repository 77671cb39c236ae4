// The end of a round of rules that only average, for each element. Devices and the host compile it,
// so that tests need no device.
#pragma once

#include "cuda/device/chunks.hpp"

namespace fast::cuda {

/// Most neighbors of a kernel. Arguments of kernels have at most 4 KiB.
constexpr int most_averaged = 128;
/// Most neighbors that a kernel of its own is compiled for.
constexpr int most_unrolled = 8;

/// Arguments of the end of a round. The arrays are in host memory. `next`, `own` and `values` are
/// where messages begin.
template <class T, class Stored>
struct AverageLaunch {
  Stored* next;
  const Stored* own;
  const Stored* const* values;
  const T* factors;
  int degree;
  combine::RunTable table;
  bool sums_first = false;  ///< the sum is made before it is added, as of buffers
  const combine::Looks* restores_after = nullptr;  ///< as in combine::ElementWork
  std::uint32_t number = 0;
};

/// x + Σ_j factors[j] · (values[j] - m) as in mixing::average(): m is the worker's own message, x
/// the weights, or m if these exist in messages only. Of buffers, the sum is made first, and m is
/// x. Degree > 0 unrolls the loop over neighbors.
template <class T, class Stored, int Degree, int Capacity>
struct AverageElements {
  Stored* next;
  const Stored* own;
  const Stored* values[Capacity];
  T factors[Capacity];
  int degree;
  bool sums_first;
  const combine::Looks* restores_after;
  std::uint32_t number;
  bool aligned;  ///< messages, to 16 bytes

  template <int Width>
  FAST_HOST_DEVICE bool is_aligned(const combine::ElementRun& run) const {
    return aligned &&
           reinterpret_cast<std::uintptr_t>(run.current) % alignof(Pack<T, Width>) == 0 &&
           run.slot_bytes % alignof(Pack<Stored, Width>) == 0;
  }

  template <int Width>
  FAST_HOST_DEVICE void at(const combine::ElementRun& run, std::size_t e) const {
    T* const current = static_cast<T*>(run.current);
    const std::size_t place = run.slot_bytes / sizeof(Stored) + e;
    const bool is_buffer = run.is_buffer != 0, apart = is_buffer || sums_first;
    T m[Width], x[Width], sum[Width], value[Degree > 0 ? Degree : 1][Width];
    const bool restores = restores_after != nullptr && restores_after->last == number;
    const bool is_in_message = current == nullptr || restores;
    if (Degree == 0 && degree == 0 && !apart && !is_in_message) {
      load(current + e, x);
      return store(x, next + place);
    }
    load(own + place, m);
    for (int j = 0; j < Degree; ++j) load(values[j] + place, value[j]);
    is_in_message ? load(own + place, x) : load(current + e, x);
    for (int i = 0; i < Width; ++i) {
      sum[i] = apart ? T{0} : x[i];
      m[i] = is_buffer ? x[i] : m[i];
    }
    const int end = Degree > 0 ? Degree : degree;
    for (int j = 0; j < end; ++j) {
      T(&of)[Width] = value[Degree > 0 ? j : 0];
      if (Degree == 0) load(values[j] + place, of);
      for (int i = 0; i < Width; ++i) sum[i] = fused(factors[j], of[i] - m[i], sum[i]);
    }
    for (int i = 0; i < Width; ++i) x[i] = apart ? x[i] + sum[i] : sum[i];
    if (current != nullptr) store(x, current + e);
    store(x, next + place);
  }
};

inline bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0;
}

template <int Degree, int Capacity, class T, class Stored>
AverageElements<T, Stored, Degree, Capacity> average_elements(
    const AverageLaunch<T, Stored>& work) {
  const bool aligned = is_aligned(work.next) && is_aligned(work.own);
  AverageElements<T, Stored, Degree, Capacity> elements{
      work.next,           work.own,    {},     {}, work.degree, work.sums_first,
      work.restores_after, work.number, aligned};
  for (int j = 0; j < work.degree; ++j) {
    elements.values[j] = work.values[j];
    elements.factors[j] = work.factors[j];
    elements.aligned = elements.aligned && is_aligned(work.values[j]);
  }
  return elements;
}

/// Calls launch(elements) with the degree unrolled.
template <int Degree = 1, class T, class Stored, class Launch>
auto with_average(const AverageLaunch<T, Stored>& work, const Launch& launch) {
  if constexpr (Degree > most_unrolled) {
    return launch(average_elements<0, most_averaged>(work));
  } else {
    if (work.degree == Degree) return launch(average_elements<Degree, Degree>(work));
    return with_average<Degree + 1>(work, launch);
  }
}

}  // namespace fast::cuda
