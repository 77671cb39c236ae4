#include "train/run/best_model.hpp"

#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

namespace fast::train {

namespace {

/// Nothing for tasks other than a classifier's.
std::optional<std::int64_t> correct_in(const Tested& found, const data::Dataset& samples) {
  if (found.measures.empty()) return static_cast<std::int64_t>(found.correct);
  const Measure& first = found.measures.front();
  if (!has_one_label(samples) || first.name != "accuracy" || first.form != Measure::Form::share) {
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

std::optional<Score> BestModel::validate(int epoch) {
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
  return score_of(found, plan_.data.validation.size());
}

bool BestModel::stops(int epoch) const {
  const int patience = plan_.options.patience;
  if (patience == 0) return false;
  if (is_keeper()) return exists() && epoch - epoch_ - skipped_ >= patience;
  return !replica_.worker().departed({0}).finished.empty();
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
  return {view_of("packed", packed_.as<std::uint8_t>()),
          view_of("correct", std::span(&correct_, 1)), view_of("epoch", std::span(&epoch_, 1)),
          view_of("loss", std::span(&loss_, 1)), view_of("skipped", std::span(&skipped_, 1))};
}

std::vector<TensorView> BestModel::room() {
  packed_ = AlignedBuffer(replica_.layout().size_bytes());
  return state();
}

}  // namespace fast::train
