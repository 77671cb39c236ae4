#include "combine/gathered_tensors.hpp"

#include <algorithm>
#include <cstring>

namespace fast::combine {
namespace {

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

/// Within a run, copies lie as the tensors do in the packed vector.
GatheredTensors::GatheredTensors(const ParameterLayout& layout) {
  const std::vector<Segment>& segments = layout.segments();
  std::size_t bytes = 0;
  const std::vector<Run> runs = runs_of(segments, bytes);
  if (runs.empty()) {
    layout_ = layout;
    return;
  }
  memory_ = AlignedBuffer(bytes);
  const std::vector<Segment> tensors = layout.tensors();
  std::vector<TensorView> views = layout.views();
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
  layout_ = layout.rebound(std::move(views));
}

void GatheredTensors::gather() const {
  for (const Copy& copy : copies_) std::memcpy(copy.here, copy.model, copy.size_bytes);
}

void GatheredTensors::scatter() const {
  for (const Copy& copy : copies_) std::memcpy(copy.model, copy.here, copy.size_bytes);
}

}  // namespace fast::combine
