#include "combine/model_memory.hpp"

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

constexpr std::size_t small_bytes = 4096;  ///< takes longer to begin a sweep of than to copy
constexpr std::size_t least_run = 4;

bool follows(const Segment& segment, const Segment& last) {
  return segment.role == last.role && segment.dtype == last.dtype;
}

/// The segments from `first` on that are small and of one group.
std::size_t end_of_run(const std::vector<Segment>& segments, std::size_t first) {
  std::size_t end = first;
  while (end < segments.size() && segments[end].size_bytes() <= small_bytes &&
         follows(segments[end], segments[first]))
    ++end;
  return end;
}

struct Run {
  std::size_t first, end;  ///< segments
  std::size_t here;        ///< offset of the first one's copy
};

std::vector<Run> runs_of(const std::vector<Segment>& segments, std::size_t& size_bytes) {
  std::vector<Run> runs;
  for (std::size_t s = 0; s < segments.size();) {
    const std::size_t end = end_of_run(segments, s);
    if (end - s >= least_run) {
      runs.push_back({s, end, size_bytes});
      const Segment& last = segments[end - 1];
      size_bytes += last.offset_bytes + last.size_bytes() - segments[s].offset_bytes;
      size_bytes = round_up(size_bytes, cache_line_bytes);
    }
    s = std::max(end, s + 1);
  }
  return runs;
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

void ModelMemory::copy_weights_to(std::byte* packed) const {
  for (const Segment& s : layout_.segments()) {
    copy(packed + s.offset_bytes, static_cast<const std::byte*>(s.data), s.size_bytes());
  }
  settle();
}

void ModelMemory::copy_weights_from(const std::byte* packed, const ParameterLayout& to) const {
  for (const Segment& s : to.segments()) {
    copy(static_cast<std::byte*>(s.data), packed + s.offset_bytes, s.size_bytes());
  }
  settle();
}

/// Within a run, copies lie as the tensors do in the packed vector.
void HostMemory::place_copies() {
  copies_.clear();
  swept_ = layout();
  const std::vector<Segment>& segments = layout().segments();
  std::size_t bytes = 0;
  const std::vector<Run> runs = runs_of(segments, bytes);
  if (runs.empty()) return;
  memory_ = AlignedBuffer(bytes);
  const std::vector<Segment> tensors = layout().tensors();
  std::vector<TensorView> views = layout().views();
  std::size_t t = 0;
  for (const Run& run : runs) {
    const std::size_t begin = segments[run.first].offset_bytes;
    const std::size_t end = segments[run.end - 1].offset_bytes + segments[run.end - 1].size_bytes();
    const auto place = [&](std::size_t offset) {
      return memory_.data() + run.here + offset - begin;
    };
    for (std::size_t s = run.first; s < run.end; ++s) {
      copies_.push_back({static_cast<std::byte*>(segments[s].data), place(segments[s].offset_bytes),
                         segments[s].size_bytes()});
    }
    while (tensors[t].offset_bytes < begin) ++t;
    for (; t < tensors.size() && tensors[t].offset_bytes < end; ++t)
      views[t].data = place(tensors[t].offset_bytes);
  }
  for (TensorView& view : views) view.strides.clear();  // checked before
  swept_ = layout().rebound(std::move(views));
}

void HostMemory::gather() const {
  for (const Copy& copy : copies_) std::memcpy(copy.here, copy.model, copy.size_bytes);
}

void HostMemory::scatter() const {
  for (const Copy& copy : copies_) std::memcpy(copy.model, copy.here, copy.size_bytes);
}

}  // namespace fast::combine
