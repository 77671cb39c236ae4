// Averaging payloads while they come from other hosts, part by part.
#include <algorithm>
#include <fast/mixing/kernels.hpp>

#include "worker/engine.hpp"
#include "worker/stopwatch.hpp"

namespace fast::worker {
namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 20;
constexpr std::size_t block_bytes = std::size_t{8} << 10;  // stays in the first-level cache

}  // namespace

/// Where the weights stay in the model's memory until all has come, as the next slot has room for
/// what becomes of them: plain averages of parameters that travel as they are.
bool Engine::mixes_early() const {
  const auto fits = [](const Segment& segment) {
    return segment.role == Role::parameter && size_bytes(segment.dtype) >= sizeof(float);
  };
  const auto& segments = layout().segments();
  return options_.staleness == 0 && declared_.plain_average && fused() && !rotates_ &&
         !options_.accelerator && mixer_->coded().kind() == codec::Kind::identity &&
         std::all_of(segments.begin(), segments.end(), fits);
}

/// False when nothing is on its way, or when what was did not come; nothing has been done then.
bool Engine::mix_as_they_arrive(std::vector<Arrival>& arrivals, const MixingRow& row) {
  const auto arriving = [](const Arrival& arrival) { return arrival.arriving != 0; };
  if (std::none_of(arrivals.begin(), arrivals.end(), arriving)) return false;
  MutablePayload next;
  {
    const Stopwatch watch(stats_.wait_s);
    next = link_.exchange->acquire();
  }
  for (const Segment& segment : layout().segments()) {
    const bool came = segment.dtype == DType::f64
                          ? average_as_they_arrive<double>(segment, arrivals, row, next)
                          : average_as_they_arrive<float>(segment, arrivals, row, next);
    if (!came) return false;
  }
  for (Arrival& arrival : arrivals) {
    if (arrival.state != Arrival::State::present) continue;
    const Stopwatch watch(stats_.wait_s);
    if (!link_.exchange->await(arrival, whole_payload) || !link_.exchange->stands(arrival)) {
      return false;
    }
  }
  const Stopwatch watch(stats_.mix_s);
  layout().scatter(next.data);
  count(arrivals, row);
  return true;
}

template <class T>
bool Engine::average_as_they_arrive(const Segment& segment, std::vector<Arrival>& arrivals,
                                    const MixingRow& row, const MutablePayload& next) {
  constexpr std::size_t part = part_bytes / sizeof(T), block = block_bytes / sizeof(T);
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
      const Stopwatch watch(stats_.wait_s);
      if (!link_.exchange->await(arrivals[k], segment.offset_bytes + end * sizeof(T))) return false;
      values.push_back(reinterpret_cast<const T*>(arrivals[k].payload.data + segment.offset_bytes) +
                       first);
      weights.push_back(static_cast<T>(row.weights[k]));
    }
    const Stopwatch watch(stats_.mix_s);
    const T* own =
        reinterpret_cast<const T*>(link_.exchange->published().data + segment.offset_bytes);
    for (std::size_t e = first; e < end; e += block) {
      const std::size_t count = std::min(block, end - e);
      std::copy_n(model + e, count, current);
      mixing::average(current, slot + e, own + e, values, weights, count);
      for (const T*& value : values) value += count;
    }
  }
  return true;
}

}  // namespace fast::worker
