#include "worker/global_average.hpp"

#include <fast/core/error.hpp>

#include "worker/stopwatch.hpp"

namespace fast::worker {

GlobalAverage::GlobalAverage(const Group& group, const ExchangeOptions& options,
                             combine::Mixer& mixer)
    : mixer_(&mixer),
      reducer_(group.open_reducer(mixer.layout().size_bytes(), options)),
      averaged_(mixer.layout().size_bytes()),
      workers_(group.size()) {}

const std::byte* GlobalAverage::of_weights(const std::byte* base, WorkerStats& stats) {
  {
    const Stopwatch watch(stats.publish_s);
    mixer_->copy_weights_to(averaged_.data());
  }
  const Stopwatch watch(stats.wait_s);
  for (const Segment& segment : mixer_->layout().segments()) average(segment, base);
  stats.bytes_sent += 2.0 * static_cast<double>(averaged_.size_bytes()) * (workers_ - 1) / workers_;
  return averaged_.data();
}

void GlobalAverage::average(const Segment& segment, const std::byte* base) {
  const auto average_as = [&]<class T>(T) {
    const std::span<T> values(reinterpret_cast<T*>(averaged_.data() + segment.offset_bytes),
                              segment.element_count);
    if (base != nullptr) {
      const T* from = reinterpret_cast<const T*>(base + segment.offset_bytes);
      for (std::size_t e = 0; e < values.size(); ++e) values[e] -= from[e];
    }
    reducer_->average(values);
  };
  if (segment.dtype == DType::f64) {
    average_as(double{});
  } else {
    require(segment.dtype == DType::f32, ErrorKind::argument,
            "Worker: an average over all workers of element type {}; f32 and f64 are supported",
            name(segment.dtype));
    average_as(float{});
  }
}

}  // namespace fast::worker
