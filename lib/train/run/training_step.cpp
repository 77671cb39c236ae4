#include "train/run/training_step.hpp"

#include <algorithm>
#include <fast/core/batch.hpp>
#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>

#include "core/numbers.hpp"

namespace fast::train {

TrainingStep::TrainingStep(Backend& backend, const Pace& pace, int rank,
                           std::unique_ptr<Reducer> reducer, std::size_t batch_size)
    : backend_(backend),
      sample_s_(pace.step_s / static_cast<double>(batch_size)),
      factor_(pace.slow.contains(rank) ? pace.slow.at(rank) : 1),
      reducer_(std::move(reducer)) {}

double TrainingStep::train(const Batch& batch) {
  if (batch.count() == 0) return 0;  // a stream no longer had any of its samples
  if (step_samples_ > 0) return paced(batch, [&] { return train_in_parts(batch); });
  if (!reducer_) return paced(batch, [&] { return backend_.train(batch); });
  return paced(batch, [&] {
    return backend_.train(batch, [this](const auto& gradients) { average(gradients); });
  });
}

double TrainingStep::train_in_parts(const Batch& batch) {
  double loss = 0;
  correct_ = 0;
  for (std::size_t first = 0; first < batch.count(); first += step_samples_) {
    const std::size_t count = std::min(step_samples_, batch.count() - first);
    const auto samples = static_cast<double>(count);
    backend_.set_learning_rate(rate_ * samples / static_cast<double>(step_samples_));
    loss += samples * backend_.train(part_of(batch, first, count));
    const std::optional<std::size_t> correct = backend_.correct_in_step();
    correct_ = correct && correct_ ? std::optional(*correct_ + *correct) : std::nullopt;
  }
  return loss / static_cast<double>(batch.count());
}

double TrainingStep::find_gradients(const void* weights, const Batch& batch) {
  return paced(batch, [&] { return backend_.in_slots()->find_gradients(weights, batch); });
}

/// The time waited for other workers does not count.
double TrainingStep::paced(const Batch& batch, const std::function<double()>& step) {
  const auto began = Clock::now();
  const double reduce_s_before = reduce_s_;
  const double loss = step();
  const double took_s = Seconds(Clock::now() - began).count() - (reduce_s_ - reduce_s_before);
  const double least_s = sample_s_ * static_cast<double>(batch.count());
  const double rest_s = std::max(took_s, least_s) * factor_ - took_s;
  if (rest_s > 0) sleep_saturated(Seconds(rest_s));
  compute_s_ = took_s + std::max(rest_s, 0.0);
  return loss;
}

namespace {

template <class T>
void average_scaled_run(Reducer& reducer, const Segment& segment, double share) {
  const std::span values(static_cast<T*>(segment.data), segment.element_count);
  if (share != 1) {
    for (T& value : values) value *= static_cast<T>(share);
  }
  reducer.average(values);
}

}  // namespace

/// Gradients that are one run of memory are averaged at once.
void TrainingStep::average(const std::vector<TensorView>& gradients) {
  const auto start = Clock::now();
  const ParameterLayout layout(gradients);
  for (const Segment& segment : layout.segments()) {
    if (segment.dtype == DType::f64) {
      average_scaled_run<double>(*reducer_, segment, share_);
    } else {
      require(segment.dtype == DType::f32, ErrorKind::argument,
              "all-reduce: gradients of type {}; f32 and f64 are supported", name(segment.dtype));
      average_scaled_run<float>(*reducer_, segment, share_);
    }
  }
  reduce_s_ += Seconds(Clock::now() - start).count();
}

}  // namespace fast::train
