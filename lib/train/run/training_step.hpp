// A worker's own part of a round: forward pass, backward pass and the optimizer's step.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/exchange/reducer.hpp>
#include <fast/train/trainer.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace fast::train {

/// Steps that are shorter than the pace demands sleep for the rest of it.
class TrainingStep {
 public:
  /// With a reducer the gradients are averaged over all workers before the optimizer's step. The
  /// pace is that of steps on `batch_size` samples; longer batches take longer.
  TrainingStep(Backend& backend, const Pace& pace, int rank, std::unique_ptr<Reducer> reducer,
               std::size_t batch_size);

  /// From now on a batch makes a step for each `samples`, scaled by its samples / `samples`. Not
  /// with a reducer. Shares do not count then. 0: one step.
  void divide(std::size_t samples) { step_samples_ = samples; }
  /// From now on steps are scaled by `share`, whatever the optimizer. With a reducer, gradients are
  /// scaled instead: then their average is that over all samples.
  void set_share(double share) { share_ = share; }
  void set_learning_rate(double rate) {
    rate_ = rate;
    backend_.set_learning_rate(all_reduces() ? rate : rate * share_);
  }
  /// Returns the loss; 0, and no step is made, without samples.
  double train(const Batch& batch);
  /// Without the optimizer's step, for weights in slots; see SlotStep.
  double find_gradients(const void* weights, const Batch& batch);

  /// Of the latest train(), before each step: correct samples of all its steps. Empty where the
  /// backend does not know.
  std::optional<std::size_t> correct() const {
    return step_samples_ > 0 ? correct_ : backend_.correct_in_step();
  }

  bool all_reduces() const { return reducer_ != nullptr; }
  double reduce_s() const { return reduce_s_; }    ///< waited in the all-reduce
  double compute_s() const { return compute_s_; }  ///< of the latest step, without such waits

 private:
  double train_in_parts(const Batch& batch);
  double paced(const Batch& batch, const std::function<double()>& step);
  void average(const std::vector<TensorView>& gradients);

  Backend& backend_;
  double sample_s_, factor_;
  std::unique_ptr<Reducer> reducer_;
  double share_ = 1, rate_ = 0;
  std::size_t step_samples_ = 0;
  std::optional<std::size_t> correct_;  ///< of train_in_parts()
  double reduce_s_ = 0, compute_s_ = 0;
};

}  // namespace fast::train
