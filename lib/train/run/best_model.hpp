// The best mean model of a run so far, and whether the run gets any better.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include "train/run/evaluator.hpp"
#include "train/run/run_plan.hpp"

namespace fast::train {

/// Worker 0 tests the mean model on the validation samples and keeps the best one: of a classifier
/// that with the most correct samples, of other tasks that with the smallest loss. A classifier has
/// one class label a sample, and its first measure is the accuracy. Runs without validation samples
/// have none.
class BestModel {
 public:
  BestModel(const RunPlan& plan, Replica& replica, Evaluator& evaluator)
      : plan_(plan), replica_(replica), evaluator_(evaluator) {}

  bool is_wanted() const { return plan_.data.validation.size() > 0; }
  bool is_keeper() const { return is_wanted() && plan_.group.rank() == 0; }
  bool exists() const { return packed_.size_bytes() > 0; }  ///< on the keeper, after an epoch

  /// After an epoch. On the keeper: the mean model's score on the validation samples.
  std::optional<Score> validate(int epoch);
  /// After an epoch in which no weights were combined: the mean model is still that of the epoch
  /// before. Such an epoch does not count for the patience.
  void skip() { ++skipped_; }
  /// Whether this worker leaves training early: worker 0 decides, the others follow it.
  bool stops(int epoch) const;

  /// Collective. Worker 0's; empty on all workers when it has none.
  AlignedBuffer hand_out() const;
  AlignedBuffer take() { return std::move(packed_); }

  /// For checkpoints; empty when there is none.
  std::vector<TensorView> state();
  /// Views like those of state(), to be written to.
  std::vector<TensorView> room();
  /// There is no best model so far.
  void forget() { packed_ = AlignedBuffer(); }

 private:
  bool is_better(double loss, const std::optional<std::int64_t>& correct) const;

  const RunPlan& plan_;
  Replica& replica_;
  Evaluator& evaluator_;
  std::int64_t correct_ = -1;
  double loss_ = 0;  ///< of the best one, summed over samples
  std::int64_t epoch_ = 0;
  std::int64_t skipped_ = 0;  ///< epochs since the best one
  AlignedBuffer packed_;
};

}  // namespace fast::train
