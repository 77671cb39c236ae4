#include "combine/streaming_average.hpp"

#include <algorithm>
#include <fast/mixing/kernels.hpp>

#include "core/stopwatch.hpp"

namespace fast::combine {
namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 20;
constexpr std::size_t stream_block_bytes = std::size_t{8} << 10;  // stays in the first-level cache

}  // namespace

bool StreamingAverage::fits(const ParameterLayout& layout) {
  const auto& segments = layout.segments();
  return std::all_of(segments.begin(), segments.end(), [](const Segment& segment) {
    return segment.role == Role::parameter && size_bytes(segment.dtype) >= sizeof(float);
  });
}

bool StreamingAverage::run(std::vector<Arrival>& arrivals, const MixingRow& row,
                           const Times& times) {
  const auto arriving = [](const Arrival& arrival) { return arrival.arriving != 0; };
  if (std::none_of(arrivals.begin(), arrivals.end(), arriving)) return false;
  MutablePayload next;
  {
    const Stopwatch watch(times.wait_s);
    next = exchange_.acquire();
  }
  for (const Segment& segment : layout_.segments()) {
    const bool came = segment.dtype == DType::f64
                          ? average<double>(segment, arrivals, row, next, times)
                          : average<float>(segment, arrivals, row, next, times);
    if (!came) return false;
  }
  for (Arrival& arrival : arrivals) {
    if (arrival.state != Arrival::State::present) continue;
    if (!await(arrival, whole_payload, times) || !exchange_.stands(arrival)) return false;
  }
  const Stopwatch watch(times.mix_s);
  layout_.scatter(next.data);
  return true;
}

bool StreamingAverage::await(Arrival& arrival, std::size_t bytes, const Times& times) {
  const Stopwatch watch(times.wait_s);
  return exchange_.await(arrival, bytes);
}

template <class T>
bool StreamingAverage::average(const Segment& segment, std::vector<Arrival>& arrivals,
                               const MixingRow& row, const MutablePayload& next,
                               const Times& times) {
  constexpr std::size_t part = part_bytes / sizeof(T), block = stream_block_bytes / sizeof(T);
  const T* model = static_cast<const T*>(segment.data);
  T* const slot = reinterpret_cast<T*>(next.data + segment.offset_bytes);
  T current[block];
  std::vector<const T*> values;
  std::vector<T> weights;
  for (std::size_t first = 0; first < segment.element_count; first += part) {
    const std::size_t end = std::min(first + part, segment.element_count);
    values.clear();
    weights.clear();
    for (std::size_t k = 0; k < arrivals.size(); ++k) {
      if (arrivals[k].state != Arrival::State::present) continue;
      if (!await(arrivals[k], segment.offset_bytes + end * sizeof(T), times)) return false;
      values.push_back(reinterpret_cast<const T*>(arrivals[k].payload.data + segment.offset_bytes) +
                       first);
      weights.push_back(static_cast<T>(row.weights[k]));
    }
    const Stopwatch watch(times.mix_s);
    const T* own = reinterpret_cast<const T*>(exchange_.published().data + segment.offset_bytes);
    for (std::size_t e = first; e < end; e += block) {
      const std::size_t count = std::min(block, end - e);
      std::copy_n(model + e, count, current);
      mixing::average(current, slot + e, own + e, values, weights, count);
      for (const T*& value : values) value += count;
    }
  }
  return true;
}

}  // namespace fast::combine
