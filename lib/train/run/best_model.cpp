#include "train/run/best_model.hpp"

#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

namespace fast::train {

std::optional<Score> BestModel::validate(int epoch) {
  if (!is_keeper()) return std::nullopt;
  AlignedBuffer mean = replica_.current_model();
  const Tested found = evaluator_.of(mean, plan_.data.validation);
  const auto correct = static_cast<std::int64_t>(found.correct);
  const bool is_better = found.measures.empty()
                             ? correct > correct_
                             : found.loss_sum < loss_ || std::isnan(loss_) || !exists();
  if (is_better) {
    correct_ = correct;
    loss_ = found.loss_sum;
    epoch_ = epoch;
    packed_ = std::move(mean);
  }
  return score_of(found, plan_.data.validation.size());
}

bool BestModel::stops(int epoch) const {
  const int patience = plan_.options.patience;
  if (patience == 0) return false;
  if (is_keeper()) return epoch - epoch_ >= patience;
  return !replica_.worker().departed({0}).finished.empty();
}

AlignedBuffer BestModel::hand_out() const {
  const std::string_view mine(reinterpret_cast<const char*>(packed_.data()), packed_.size_bytes());
  const std::string best =
      plan_.group.all_gather(mine, plan_.deadline(), "Trainer: handing out the best model")[0];
  AlignedBuffer model(best.size());
  std::memcpy(model.data(), best.data(), best.size());
  return model;
}

std::vector<TensorView> BestModel::state() {
  if (!exists()) return {};
  return {view_of("packed", packed_.as<std::uint8_t>()),
          view_of("correct", std::span(&correct_, 1)), view_of("epoch", std::span(&epoch_, 1)),
          view_of("loss", std::span(&loss_, 1))};
}

std::vector<TensorView> BestModel::room() {
  packed_ = AlignedBuffer(replica_.layout().size_bytes());
  return state();
}

}  // namespace fast::train
