#include "worker/global_average.hpp"

#include <fast/core/error.hpp>

#include "combine/finite.hpp"
#include "worker/phase_timer.hpp"

namespace fast::worker {

GlobalAverage::GlobalAverage(const Context& context, std::unique_ptr<Reducer> reducer)
    : worker_(context),
      reducer_(std::move(reducer)),
      averaged_(context.mixer.layout().size_bytes()) {}

void GlobalAverage::combine(const algorithm::RoundInfo& info, Publisher& publisher) {
  const Payload own = worker_.exchange.published();
  const std::byte* average = average_of_weights(own.data);
  {
    const PhaseTimer timer(worker_, Phase::mix, worker_.progress.stats.mix_s);
    worker_.mixer.combine_with_pull(own, {average, nullptr, 0}, info);
  }
  publisher.publish({.round = info.round + 1, .learning_rate = info.learning_rate});
  worker_.exchange.complete(info.round + 1);
}

/// Neighbors read what a rule publishes before the step in the next round.
void GlobalAverage::average(const algorithm::RoundInfo& info, Publisher& publisher) {
  const std::byte* average = average_of_weights(nullptr);
  {
    const PhaseTimer timer(worker_, Phase::mix, worker_.progress.stats.mix_s);
    worker_.mixer.memory().copy_weights_from(average);
  }
  if (worker_.setting.before_step()) {
    publisher.publish({.round = info.round + 1, .learning_rate = info.learning_rate});
  } else {
    publisher.publish_weights();
  }
  worker_.exchange.complete(info.round + 1);
}

/// The average over all workers of the weights minus `base` (packed), if there is one. Valid until
/// the next call.
const std::byte* GlobalAverage::average_of_weights(const std::byte* base) {
  WorkerStats& stats = worker_.progress.stats;
  {
    const PhaseTimer timer(worker_, Phase::publish, worker_.progress.stats.publish_s);
    worker_.mixer.memory().copy_weights_to(averaged_.data());
    const ParameterLayout& layout = worker_.mixer.layout();
    require_finite(worker_, combine::is_finite(layout, averaged_.data()));
  }
  const PhaseTimer timer(worker_, Phase::wait, worker_.progress.stats.wait_s);
  for (const Segment& segment : worker_.mixer.layout().segments()) average(segment, base);
  const int workers = worker_.setting.group.size();
  stats.bytes_sent += 2.0 * static_cast<double>(averaged_.size_bytes()) * (workers - 1) / workers;
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
