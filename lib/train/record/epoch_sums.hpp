// What a worker's training steps of an epoch add up to.
#pragma once

#include <cstddef>
#include <optional>

namespace fast::train {

class EpochSums {
 public:
  /// A step on so many samples. `correct`: how many of them the model got right, if that is known.
  void add(double loss, std::size_t samples, std::optional<std::size_t> correct) {
    loss_sum_ += loss;
    ++steps_;
    samples_ += samples;
    correct_ = steps_ == 1 || correct_ ? sum(correct) : std::nullopt;
  }

  /// Over the steps. Empty without any: none of the samples could be read.
  std::optional<double> mean_loss() const {
    if (steps_ == 0) return {};
    return loss_sum_ / static_cast<double>(steps_);
  }
  /// A share of the samples, 0..1. Empty unless it is known of all steps.
  std::optional<double> accuracy() const {
    if (!correct_) return {};
    return static_cast<double>(*correct_) / static_cast<double>(samples_);
  }

 private:
  std::optional<std::size_t> sum(std::optional<std::size_t> correct) const {
    return correct ? std::optional(correct_.value_or(0) + *correct) : std::nullopt;
  }

  double loss_sum_ = 0;
  std::size_t steps_ = 0, samples_ = 0;
  std::optional<std::size_t> correct_;
};

}  // namespace fast::train
