#include "train/run/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/data/loader.hpp>
#include <string_view>
#include <utility>

namespace fast::train {
namespace {

constexpr std::size_t most_samples = 500;       ///< of a small batch
constexpr std::size_t small_batch = 64 * 1024;  ///< values of its samples
/// What stands in the place of measures, also in the evaluations of backends.
constexpr auto mean_loss = "mean_loss";

/// Errors of one scaled target in its own units. Those of several targets, which may have several
/// units, stay in standard deviations.
void to_units_of_data(std::vector<Measure>& measures, const data::Normalization& normalization) {
  if (normalization.target_stddev.size() != 1) return;
  const double stddev = double{normalization.target_stddev.front()};
  for (Measure& measure : measures) {
    if (measure.name == "mae" && measure.form == Measure::Form::mean) measure.sums[0] *= stddev;
    if (measure.name == "rmse" && measure.form == Measure::Form::root_of_mean)
      measure.sums[0] *= stddev * stddev;
  }
}

}  // namespace

Score score_of(const Tested& sums, std::size_t samples) {
  return {sums.loss_sum / static_cast<double>(sums.samples),
          static_cast<double>(sums.correct) / static_cast<double>(samples), samples, sums.measures};
}

std::vector<std::pair<std::string, double>> Score::results() const {
  if (samples == 0) return {};
  if (measures.empty()) return {{"accuracy", accuracy}};
  return values_of(measures);
}

ProgressState::Accuracy Score::shown(std::string_view of) const {
  if (measures.empty()) return {of, accuracy};
  const Measure& first = measures.front();
  return {of, first.value(), first.form, first.form == Measure::Form::share ? "" : first.name};
}

std::size_t test_batch(std::size_t training_batch, std::size_t sample_size) {
  return std::max(training_batch,
                  std::clamp<std::size_t>(small_batch / std::max<std::size_t>(sample_size, 1), 1,
                                          most_samples));
}

Evaluator::Evaluator(Replica& replica, data::Normalization normalization,
                     std::size_t training_batch)
    : replica_(replica),
      normalization_(std::move(normalization)),
      training_batch_(training_batch) {}

Tested Evaluator::own(const data::Dataset& samples) {
  data::Loader loader(samples, normalization_, test_batch(training_batch_, samples.sample_size()));
  Tested total;
  for (std::size_t r = 0; r < loader.rounds(); ++r) {
    const Batch& batch = loader.batch(0, r);
    if (batch.count() == 0) continue;  // all of its samples are damaged
    const Evaluation found = replica_.backend().evaluate(batch);
    require_valid(found.measures);
    total.add(found);
    total.samples += batch.count();
  }
  const auto count = static_cast<double>(total.samples);
  if (total.measures.empty() && !samples.has_one_label() && total.samples > 0) {
    total.measures = {{mean_loss, Measure::Form::mean, {total.loss_sum, count}}};
  }
  // Of batches without measures, while others have some.
  if (total.measures.size() > 1) {
    std::erase_if(total.measures, [&](const Measure& measure) {
      return measure.name == mean_loss && measure.sums.at(1) < count;
    });
  }
  to_units_of_data(total.measures, normalization_);
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

namespace {

/// Nothing for tasks other than a classifier's.
std::optional<std::int64_t> correct_in(const Tested& found, const data::Dataset& samples) {
  if (found.measures.empty()) return static_cast<std::int64_t>(found.correct);
  const Measure& first = found.measures.front();
  if (!samples.has_one_label() || first.name != "accuracy" || first.form != Measure::Form::share) {
    return std::nullopt;
  }
  return std::llround(first.sums.at(0));
}

}  // namespace

/// The first one is the best so far; a loss that is no number is worse than any other.
bool BestModel::is_better(double loss, const std::optional<std::int64_t>& correct) const {
  if (!exists()) return true;
  if (correct) return *correct > correct_;
  return loss < loss_ || (std::isnan(loss_) && !std::isnan(loss));
}

void Plateau::note(double loss, std::int64_t in_force, bool counts) {
  const bool is_lower = loss < least_ * (1 - rate_.plateau_threshold);
  if (is_lower) least_ = loss;
  const bool is_pending = wanted_ > in_force;
  without_ = is_lower || is_pending || !counts ? 0 : without_ + 1;
  if (without_ <= rate_.plateau_patience) return;
  without_ = 0;
  constexpr double least_change = 1e-8;  // as in PyTorch
  if (rate_.at(1, 1, in_force) * (1 - rate_.plateau_factor) > least_change) wanted_ = in_force + 1;
}

std::vector<TensorView> Plateau::state() {
  return {view_of("least_loss", std::span(&least_, 1)),
          view_of("epochs_without", std::span(&without_, 1)),
          view_of("reductions", std::span(&wanted_, 1))};
}

std::optional<Score> BestModel::validate(int epoch, std::int64_t reductions) {
  if (!is_keeper()) return std::nullopt;
  AlignedBuffer mean = replica_.current_model();
  const Tested found = evaluator_.of(mean, plan_.data.validation);
  const std::optional<std::int64_t> correct = correct_in(found, plan_.data.validation);
  if (is_better(found.loss_sum, correct)) {
    correct_ = correct.value_or(0);
    loss_ = found.loss_sum;
    epoch_ = epoch;
    skipped_ = 0;
    packed_ = std::move(mean);
  }
  const Score score = score_of(found, plan_.data.validation.size());
  const LearningRate& rate = plan_.options.learning_rate;
  if (rate.schedule == LearningRate::Schedule::plateau)
    plateau_.note(score.loss, reductions, epoch >= rate.warmup_of(plan_.options.epochs));
  return score;
}

bool BestModel::stops(int epoch) const {
  const int patience = plan_.options.patience;
  if (patience == 0) return false;
  if (is_keeper()) return exists() && epoch - epoch_ - skipped_ >= patience;
  return !replica_.worker().departed({0}).finished.empty();
}

bool BestModel::agree_on_end(int epoch) {
  if (plan_.options.patience == 0) return false;
  const std::string mine = is_keeper() && stops(epoch) ? "ended" : "";
  has_ended_ = !plan_.group.all_gather(mine, plan_.deadline(), "Trainer: resuming")[0].empty();
  return has_ended_;
}

AlignedBuffer BestModel::hand_out() const {
  const std::string_view mine(reinterpret_cast<const char*>(packed_.data()), packed_.size_bytes());
  const std::string best =
      plan_.group.all_gather(mine, plan_.deadline(), "Trainer: handing out the best model")[0];
  if (best.empty()) return {};
  AlignedBuffer model(best.size());
  std::memcpy(model.data(), best.data(), best.size());
  return model;
}

std::vector<TensorView> BestModel::state() {
  if (!exists()) return {};
  std::vector<TensorView> all = {
      view_of("packed", packed_.as<std::uint8_t>()), view_of("correct", std::span(&correct_, 1)),
      view_of("epoch", std::span(&epoch_, 1)), view_of("loss", std::span(&loss_, 1)),
      view_of("skipped", std::span(&skipped_, 1))};
  // Another schedule does not go on counting.
  if (plan_.options.learning_rate.schedule == LearningRate::Schedule::plateau)
    for (TensorView& view : plateau_.state()) all.push_back(std::move(view));
  return all;
}

std::vector<TensorView> BestModel::room() {
  packed_ = AlignedBuffer(replica_.layout().size_bytes());
  return state();
}

}  // namespace fast::train
