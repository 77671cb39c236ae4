// Random problems for kernels, and their answers by the host's kernels.
#pragma once

#include <fast/core/element.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/kernels.hpp>
#include <type_traits>
#include <vector>

namespace fast::testing {

template <class T>
std::vector<T> random_vector(Rng& rng, std::size_t count) {
  std::vector<T> values;
  for (std::size_t e = 0; e < count; ++e) {
    if constexpr (std::is_same_v<T, BFloat16>)
      values.push_back(to_bfloat16(static_cast<float>(rng.normal())));
    else
      values.push_back(static_cast<T>(rng.normal()));
  }
  return values;
}

/// A worker's own and its neighbors' values, with weights.
template <class T, class Stored>
struct AverageSample {
  std::vector<T> current, weights;
  std::vector<Stored> own, next;
  std::vector<std::vector<Stored>> neighbors;
  std::vector<const Stored*> values;

  AverageSample(Rng& rng, std::size_t count, std::size_t degree)
      : current(random_vector<T>(rng, count)), own(random_vector<Stored>(rng, count)), next(count) {
    for (std::size_t j = 0; j < degree; ++j) {
      neighbors.push_back(random_vector<Stored>(rng, count));
      weights.push_back(static_cast<T>(rng.uniform()));
    }
    for (const auto& neighbor : neighbors) values.push_back(neighbor.data());
  }

  /// The host's average, from `from` (null: from `own`) to `to`.
  void average_on_host(T* from, Stored* to) const {
    mixing::average(from, to, own.data(), values, weights, own.size());
    mixing::stream_fence();
  }
};

inline bool same(float a, float b) { return a == b; }
inline bool same(double a, double b) { return a == b; }
inline bool same(BFloat16 a, BFloat16 b) { return a.bits == b.bits; }

template <class T>
std::size_t differing(const std::vector<T>& a, const std::vector<T>& b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t e = 0; e < a.size() && e < b.size(); ++e) count += same(a[e], b[e]) ? 0 : 1;
  return count;
}

}  // namespace fast::testing
