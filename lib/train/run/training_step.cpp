#include "train/run/training_step.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/layout.hpp>
#include <thread>

namespace fast::train {

TrainingStep::TrainingStep(Backend& backend, const Pace& pace, int rank,
                           std::unique_ptr<Reducer> reducer)
    : backend_(backend),
      step_s_(pace.step_s),
      factor_(rank == pace.slow_worker ? pace.slow_factor : 1),
      reducer_(std::move(reducer)) {}

double TrainingStep::train(const Batch& batch) {
  if (!reducer_) return paced([&] { return backend_.train(batch); });
  return paced(
      [&] { return backend_.train(batch, [this](const auto& gradients) { average(gradients); }); });
}

double TrainingStep::find_gradients(const void* weights, const Batch& batch) {
  return paced([&] { return backend_.in_slots()->find_gradients(weights, batch); });
}

/// The time waited for other workers does not count.
double TrainingStep::paced(const std::function<double()>& step) const {
  const auto began = Clock::now();
  const double reduce_s_before = reduce_s_;
  const double loss = step();
  const double took_s = Seconds(Clock::now() - began).count() - (reduce_s_ - reduce_s_before);
  const double rest_s = std::max(took_s, step_s_) * factor_ - took_s;
  if (rest_s > 0) std::this_thread::sleep_for(Seconds(rest_s));
  return loss;
}

/// Gradients that are one run of memory are averaged at once.
void TrainingStep::average(const std::vector<TensorView>& gradients) {
  const auto start = Clock::now();
  const ParameterLayout layout(gradients);
  for (const Segment& segment : layout.segments()) {
    if (segment.dtype == DType::f64) {
      reducer_->average(std::span(static_cast<double*>(segment.data), segment.element_count));
    } else {
      require(segment.dtype == DType::f32, ErrorKind::argument,
              "all-reduce: gradients of type {}; f32 and f64 are supported", name(segment.dtype));
      reducer_->average(std::span(static_cast<float*>(segment.data), segment.element_count));
    }
  }
  reduce_s_ += Seconds(Clock::now() - start).count();
}

}  // namespace fast::train
