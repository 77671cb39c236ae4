// Tests models on samples, and keeps the best one.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/data/dataset.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/progress.hpp"
#include "train/run/replica.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

// Tests models on samples: the replica itself, or another model in its place.

/// Sums over the samples that can be read.
struct Tested : Evaluation {
  std::size_t samples = 0;
};

/// The loss and the measures are those of the samples that can be read. For the accuracy, a damaged
/// sample counts as wrong.
struct Score {
  double loss = 0, accuracy = 0;
  std::size_t samples = 0;
  std::vector<Measure> measures = {};  ///< of the task; empty: the accuracy

  /// What is reported, by name: the accuracy, or all measures. Nothing without samples.
  std::vector<std::pair<std::string, double>> results() const;
  /// The most important one, as ProgressState has it.
  ProgressState::Accuracy shown(std::string_view of) const;
};
/// `samples`: with damaged ones.
Score score_of(const Tested& sums, std::size_t samples);

/// Samples that a model computes at once in a test. At least a batch of the training, for which
/// there is memory. More, up to 500, if they have 65,536 values at most (`sample_size` each).
std::size_t test_batch(std::size_t training_batch, std::size_t sample_size);

class Evaluator {
 public:
  Evaluator(Replica& replica, data::Normalization normalization, std::size_t training_batch);

  /// Of the replica's own weights.
  Tested own(const data::Dataset& samples);
  /// Of a packed model. The replica's weights are put back.
  Tested of(const AlignedBuffer& model, const data::Dataset& samples);

 private:
  Replica& replica_;
  data::Normalization normalization_;
  std::size_t training_batch_;
};

/// The contiguous part of the samples that worker `rank` tests: all parts together are the whole.
data::Dataset part_of(const data::Dataset& samples, int rank, int workers);

// When the learning rate falls.

/// Of the schedule plateau: PyTorch's ReduceLROnPlateau with mode min, threshold mode rel and no
/// cooldown. A reduction that is not in force yet takes the place of epochs that count.
class Plateau {
 public:
  explicit Plateau(const LearningRate& rate) : rate_(rate) {}

  /// After an epoch. `in_force`: reductions so far; `counts`: an epoch without a lower loss counts.
  void note(double loss, std::int64_t in_force, bool counts = true);
  std::int64_t wanted() const { return wanted_; }  ///< reductions
  std::vector<TensorView> state();                 ///< for checkpoints

 private:
  LearningRate rate_;
  double least_ = std::numeric_limits<double>::infinity();
  std::int64_t without_ = 0;  ///< a lower loss, epochs in a row
  std::int64_t wanted_ = 0;
};

// The best mean model of a run so far, and whether the run gets any better.

/// Worker 0 tests the mean model on the validation samples and keeps the best one: of a classifier
/// that with the most correct samples, of other tasks that with the smallest loss. A classifier has
/// one class label a sample, and its first measure is the accuracy. Runs without validation samples
/// have none.
class BestModel {
 public:
  BestModel(const RunPlan& plan, Replica& replica, Evaluator& evaluator)
      : plan_(plan),
        replica_(replica),
        evaluator_(evaluator),
        plateau_(plan.options.learning_rate) {}

  bool is_wanted() const { return plan_.data.validation.size() > 0; }
  bool is_keeper() const { return is_wanted() && plan_.group.rank() == 0; }
  bool exists() const { return packed_.size_bytes() > 0; }  ///< on the keeper, after an epoch

  /// After an epoch. On the keeper: the mean model's score on the validation samples. `reductions`
  /// of the learning rate have been in force.
  std::optional<Score> validate(int epoch, std::int64_t reductions = 0);
  /// On the keeper, of the schedule plateau: how often the learning rate shall be lowered in all.
  std::int64_t reductions() const { return plateau_.wanted(); }
  /// After an epoch in which no weights were combined: the mean model is still that of the epoch
  /// before. Such an epoch does not count for the patience.
  void skip() { ++skipped_; }
  /// Whether this worker leaves training early: worker 0 decides, the others follow it.
  bool stops(int epoch) const;
  /// Collective, of a run that resumes after that epoch: whether it had stopped then.
  bool agree_on_end(int epoch);
  bool has_ended() const { return has_ended_; }  ///< the same on all workers

  /// Collective. Worker 0's; empty on all workers when it has none.
  AlignedBuffer hand_out() const;
  AlignedBuffer take() { return std::move(packed_); }

  /// For checkpoints; empty when there is none.
  std::vector<TensorView> state();
  /// Views like those of state(), to be written to.
  std::vector<TensorView> room();
  /// There is no best model so far.
  void forget() {
    packed_ = AlignedBuffer();
    plateau_ = Plateau(plan_.options.learning_rate);
  }

 private:
  bool is_better(double loss, const std::optional<std::int64_t>& correct) const;

  const RunPlan& plan_;
  Replica& replica_;
  Evaluator& evaluator_;
  std::int64_t correct_ = -1;
  double loss_ = 0;  ///< of the best one, summed over samples
  std::int64_t epoch_ = 0;
  std::int64_t skipped_ = 0;  ///< epochs since the best one
  bool has_ended_ = false;
  Plateau plateau_;
  AlignedBuffer packed_;
};

}  // namespace fast::train
