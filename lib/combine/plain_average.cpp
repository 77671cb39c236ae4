#include "combine/plain_average.hpp"

#include <algorithm>
#include <fast/mixing/kernels.hpp>

#include "core/stopwatch.hpp"
#include "exchange/shared/seqlock.hpp"

namespace fast::combine {
namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 20;
constexpr std::size_t piece_bytes = std::size_t{8} << 10;  // stays in the first-level cache

/// The elements of a segment in the neighbors' payloads, from `first` on, and their weights.
template <class T>
struct Terms {
  Terms(const Segment& segment, const std::vector<Arrival>& arrivals, const MixingRow& row,
        std::size_t first) {
    for (std::size_t k = 0; k < arrivals.size(); ++k) {
      if (!is_present(arrivals[k])) continue;
      const std::byte* from = arrivals[k].payload.data + segment.offset_bytes;
      values.push_back(reinterpret_cast<const T*>(from) + first);
      weights.push_back(static_cast<T>(row.weights[k]));
    }
  }
  std::vector<const T*> values;
  std::vector<T> weights;
};

template <class T>
bool average_segment(const Segment& segment, const std::vector<Arrival>& arrivals,
                     const MixingRow& row, const Payload& own, const MutablePayload& next) {
  const Terms<T> terms(segment, arrivals, row, 0);
  return mixing::average(static_cast<T*>(segment.data),
                         reinterpret_cast<T*>(next.data + segment.offset_bytes),
                         reinterpret_cast<const T*>(own.data + segment.offset_bytes), terms.values,
                         terms.weights, segment.element_count);
}

bool is_arriving(const Arrival& arrival) { return arrival.arriving != 0; }

}  // namespace

/// The thread sanitizer does not know the reads of these kernels.
bool PlainAverage::fits(const ParameterLayout& layout) {
  const auto& segments = layout.segments();
  return !guarded_reads &&
         std::all_of(segments.begin(), segments.end(), [](const Segment& segment) {
           return segment.role == Role::parameter && size_bytes(segment.dtype) >= sizeof(float);
         });
}

bool PlainAverage::run(std::vector<Arrival>& arrivals, const MixingRow& row,
                       const MutablePayload& next, const Times& times) {
  finite_ = true;
  if (std::any_of(arrivals.begin(), arrivals.end(), is_arriving))
    return average_arriving(arrivals, row, next, times);
  const Stopwatch watch(times.mix_s);
  average_whole(arrivals, row, next);
  return all_intact(arrivals);
}

void PlainAverage::average_whole(const std::vector<Arrival>& arrivals, const MixingRow& row,
                                 const MutablePayload& next) {
  const Payload own = exchange_.published();
  memory_.gather();
  for (const Segment& segment : memory_.swept().segments()) {
    const bool finite = segment.dtype == DType::f64
                            ? average_segment<double>(segment, arrivals, row, own, next)
                            : average_segment<float>(segment, arrivals, row, own, next);
    finite_ = finite_ && finite;
  }
  memory_.scatter();
}

/// Into the slot first: what has arrived may turn out not to count.
bool PlainAverage::average_arriving(std::vector<Arrival>& arrivals, const MixingRow& row,
                                    const MutablePayload& next, const Times& times) {
  memory_.gather();
  for (const Segment& segment : memory_.swept().segments()) {
    const bool came = segment.dtype == DType::f64
                          ? average_parts<double>(segment, arrivals, row, next, times)
                          : average_parts<float>(segment, arrivals, row, next, times);
    if (!came) return false;
  }
  for (Arrival& arrival : arrivals) {
    if (is_present(arrival) && !await(arrival, whole_payload, times)) return false;
  }
  if (!all_intact(arrivals)) return false;
  const Stopwatch watch(times.mix_s);
  memory_.layout().scatter(next.data);
  return true;
}

template <class T>
bool PlainAverage::average_parts(const Segment& segment, std::vector<Arrival>& arrivals,
                                 const MixingRow& row, const MutablePayload& next,
                                 const Times& times) {
  constexpr std::size_t part = part_bytes / sizeof(T), block = piece_bytes / sizeof(T);
  const T* model = static_cast<const T*>(segment.data);
  T* const slot = reinterpret_cast<T*>(next.data + segment.offset_bytes);
  T current[block];
  for (std::size_t first = 0; first < segment.element_count; first += part) {
    const std::size_t end = std::min(first + part, segment.element_count);
    for (Arrival& arrival : arrivals) {
      const std::size_t needed = segment.offset_bytes + end * sizeof(T);
      if (is_present(arrival) && !await(arrival, needed, times)) return false;
    }
    const Stopwatch watch(times.mix_s);
    Terms<T> terms(segment, arrivals, row, first);
    const T* own = reinterpret_cast<const T*>(exchange_.published().data + segment.offset_bytes);
    for (std::size_t e = first; e < end; e += block) {
      const std::size_t count = std::min(block, end - e);
      std::copy_n(model + e, count, current);
      const bool finite =
          mixing::average(current, slot + e, own + e, terms.values, terms.weights, count);
      finite_ = finite_ && finite;
      for (const T*& value : terms.values) value += count;
    }
  }
  return true;
}

bool PlainAverage::all_intact(const std::vector<Arrival>& arrivals) const {
  return std::all_of(arrivals.begin(), arrivals.end(), [this](const Arrival& arrival) {
    return !is_present(arrival) || exchange_.is_intact(arrival);
  });
}

bool PlainAverage::await(Arrival& arrival, std::size_t bytes, const Times& times) {
  const Stopwatch watch(times.wait_s);
  return exchange_.await(arrival, bytes);
}

}  // namespace fast::combine
