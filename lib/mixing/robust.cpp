#include <fast/mixing/robust.hpp>

#include <algorithm>
#include <functional>
#include <vector>

namespace fast::mixing {

double clip_radius(std::span<const double> distances, std::size_t tolerated) {
  if (distances.size() <= tolerated) return 0;
  std::vector<double> furthest(distances.begin(), distances.end());
  const auto place = furthest.begin() + static_cast<std::ptrdiff_t>(tolerated);
  std::ranges::nth_element(furthest, place, std::greater<>());
  return *place;
}

namespace {

constexpr std::size_t at_once = 512;  ///< elements whose values are sorted together

/// Sorts each column of a table whose rows have `at_once` elements: by comparisons of whole rows,
/// which compilers vectorize.
template <class T>
void sort_columns(T* rows, std::size_t row_count, std::size_t count) {
  for (std::size_t last = 1; last < row_count; ++last) {
    for (std::size_t k = last; k > 0; --k) {
      T* const low = rows + (k - 1) * at_once;
      T* const high = rows + k * at_once;
      for (std::size_t e = 0; e < count; ++e) {
        const T a = low[e], b = high[e];
        low[e] = std::min(a, b);
        high[e] = std::max(a, b);
      }
    }
  }
}

/// Differences from the own value are sorted, which is 0 among them: neighbors that have the same
/// values leave them exactly as they are.
template <class T>
void trim_block(T* out, const T* own, std::span<const T* const> values, std::size_t trim,
                std::size_t first, std::size_t count, std::span<std::uint64_t> kept) {
  thread_local std::vector<T> rows;
  const std::size_t n = values.size() + 1;
  rows.assign(n * at_once, T{0});
  for (std::size_t j = 0; j < values.size(); ++j) {
    for (std::size_t e = 0; e < count; ++e)
      rows[j * at_once + e] = values[j][first + e] - own[first + e];
  }
  sort_columns(rows.data(), n, count);
  const T* const least = rows.data() + trim * at_once;
  const T* const most = rows.data() + (n - 1 - trim) * at_once;
  for (std::size_t j = 0; j < values.size(); ++j) {
    std::uint32_t counted = 0;
    for (std::size_t e = 0; e < count; ++e) {
      const T difference = values[j][first + e] - own[first + e];
      counted += static_cast<std::uint32_t>(least[e] <= difference) &
                 static_cast<std::uint32_t>(difference <= most[e]);
    }
    kept[j] += counted;
  }
  std::fill_n(out + first, count, T{0});
  for (const T* row = least; row <= most; row += at_once) {
    for (std::size_t e = 0; e < count; ++e) out[first + e] += row[e];
  }
  const T counted = static_cast<T>(n - 2 * trim);
  for (std::size_t e = 0; e < count; ++e) out[first + e] /= counted;
}

template <class T>
void trim_all(T* out, const T* own, std::span<const T* const> values, std::size_t trim,
              std::size_t count, std::span<std::uint64_t> kept) {
  for (std::size_t first = 0; first < count; first += at_once)
    trim_block(out, own, values, trim, first, std::min(at_once, count - first), kept);
}

}  // namespace

void trimmed_differences(float* out, const float* own, std::span<const float* const> values,
                         std::size_t trim, std::size_t count, std::span<std::uint64_t> kept) {
  trim_all(out, own, values, trim, count, kept);
}
void trimmed_differences(double* out, const double* own, std::span<const double* const> values,
                         std::size_t trim, std::size_t count, std::span<std::uint64_t> kept) {
  trim_all(out, own, values, trim, count, kept);
}

}  // namespace fast::mixing
