#include "combine/moving_average.hpp"

#include <cstring>
#include <fast/mixing/kernels.hpp>

#include "combine/element_work.hpp"

namespace fast::combine {
namespace {

template <class T>
void move_run(std::byte* average, const Segment& segment, double part) {
  T* const place = reinterpret_cast<T*>(average);
  const T* const weights = static_cast<const T*>(segment.data);
  const auto share = static_cast<T>(part);
  mixing::average(static_cast<T*>(nullptr), place, place, {&weights, 1}, {&share, 1},
                  segment.element_count);
}

void move_run_on_host(std::byte* average, const Segment& segment, double part) {
  if (segment.dtype == DType::f32) {
    move_run<float>(average, segment, part);
  } else if (segment.dtype == DType::f64) {
    move_run<double>(average, segment, part);
  } else {
    std::memcpy(average, segment.data, segment.size_bytes());
  }
}

ElementWork run_on_device(std::byte* average, const Segment& segment, double part) {
  ElementWork work;
  work.type = work.slot = segment.dtype;
  work.table = table_of({nullptr, 0, segment.element_count, 0, 0, 0, 0});
  work.average = true;
  work.sources = {static_cast<const std::byte*>(segment.data)};
  work.weights = {part};
  work.own = work.next = average;
  return work;
}

}  // namespace

void move_average(std::byte* average, const ParameterLayout& weights, double part,
                  Accelerator* accelerator) {
  for (const Segment& segment : weights.segments()) {
    std::byte* const run = average + segment.offset_bytes;
    if (accelerator == nullptr) {
      move_run_on_host(run, segment, part);
    } else if (size_bytes(segment.dtype) >= sizeof(float)) {
      accelerator->run(run_on_device(run, segment, part));
    } else {
      accelerator->work()->copy(run, static_cast<const std::byte*>(segment.data),
                                segment.size_bytes());
    }
  }
  if (accelerator != nullptr) accelerator->work()->settle();
  mixing::stream_fence();
}

}  // namespace fast::combine
