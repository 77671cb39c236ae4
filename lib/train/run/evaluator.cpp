#include "train/run/evaluator.hpp"

#include <fast/data/loader.hpp>
#include <utility>

namespace fast::train {
namespace {

constexpr std::size_t evaluation_batch = 500;

/// A backend that measures nothing of another task than one class label a sample: its mean loss.
Evaluation measured(Evaluation found, const Batch& batch) {
  require_valid(found.measures);
  const bool has_accuracy = batch.targets.empty() && batch.target_shape.empty();
  if (found.measures.empty() && !has_accuracy) {
    const auto count = static_cast<double>(batch.count());
    found.measures = {{"mean_loss", Measure::Form::mean, {found.loss_sum, count}}};
  }
  return found;
}

}  // namespace

Score score_of(const Tested& sums, std::size_t samples) {
  return {sums.loss_sum / static_cast<double>(sums.samples),
          static_cast<double>(sums.correct) / static_cast<double>(samples), samples, sums.measures};
}

std::vector<std::pair<std::string, double>> Score::results() const {
  if (measures.empty()) return {{"accuracy", accuracy}};
  return values_of(measures);
}

ProgressState::Accuracy Score::shown(std::string_view of) const {
  if (measures.empty()) return {of, accuracy};
  const Measure& first = measures.front();
  return {of, first.value(), first.form, first.form == Measure::Form::share ? "" : first.name};
}

Evaluator::Evaluator(Replica& replica, data::Normalization normalization)
    : replica_(replica), normalization_(std::move(normalization)) {}

Tested Evaluator::own(const data::Dataset& samples) {
  data::Loader loader(samples, normalization_, evaluation_batch);
  Tested total;
  for (std::size_t r = 0; r < loader.rounds(); ++r) {
    const Batch& batch = loader.batch(0, r);
    total.add(measured(replica_.backend().evaluate(batch), batch));
    total.samples += batch.count();
  }
  return total;
}

Tested Evaluator::of(const AlignedBuffer& model, const data::Dataset& samples) {
  const AlignedBuffer kept = replica_.own_model();
  replica_.adopt(model);
  const Tested result = own(samples);
  replica_.adopt(kept);
  return result;
}

data::Dataset part_of(const data::Dataset& samples, int rank, int workers) {
  const auto bound = [&](int r) {
    return samples.size() * static_cast<std::size_t>(r) / static_cast<std::size_t>(workers);
  };
  return samples.slice(bound(rank), bound(rank + 1) - bound(rank));
}

}  // namespace fast::train
