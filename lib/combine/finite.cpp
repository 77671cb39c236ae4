#include "combine/finite.hpp"

#include <algorithm>
#include <cstdint>
#include <fast/mixing/kernels.hpp>

namespace fast::combine {
namespace {

bool finite_halves(const std::byte* data, std::size_t count, std::uint16_t exponent) {
  const auto* bits = reinterpret_cast<const std::uint16_t*>(data);
  unsigned bad = 0;
  for (std::size_t e = 0; e < count; ++e) bad |= (bits[e] & exponent) == exponent ? 1U : 0U;
  return bad == 0;
}

bool is_finite(const Segment& segment, const void* memory) {
  const auto* data = static_cast<const std::byte*>(memory);
  const std::size_t count = segment.element_count;
  switch (segment.dtype) {
    case DType::f32:
      return mixing::all_finite(reinterpret_cast<const float*>(data), count);
    case DType::f64:
      return mixing::all_finite(reinterpret_cast<const double*>(data), count);
    case DType::bf16:
      return finite_halves(data, count, std::uint16_t{0x7f80});
    default:
      return finite_halves(data, count, std::uint16_t{0x7c00});
  }
}

}  // namespace

bool is_finite(const ParameterLayout& layout, const std::byte* packed) {
  const auto& segments = layout.segments();
  return std::all_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return is_finite(segment, packed + segment.offset_bytes);
  });
}

bool is_finite(const ParameterLayout& layout) {
  const auto& segments = layout.segments();
  return std::all_of(segments.begin(), segments.end(),
                     [](const Segment& segment) { return is_finite(segment, segment.data); });
}

std::string first_not_finite(const ParameterLayout& layout) {
  const std::vector<Segment> tensors = layout.tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (!is_finite(tensors[t], tensors[t].data)) return describe(layout.views()[t]);
  return {};
}

}  // namespace fast::combine
