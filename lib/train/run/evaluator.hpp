// Tests models on samples: the replica itself, or another model in its place.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/core/memory.hpp>
#include <fast/data/dataset.hpp>
#include <fast/train/progress.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/run/replica.hpp"

namespace fast::train {

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

/// Whether the samples have one class label each, and nothing else.
bool has_one_label(const data::Dataset& samples);

/// The contiguous part of the samples that worker `rank` tests: all parts together are the whole.
data::Dataset part_of(const data::Dataset& samples, int rank, int workers);

}  // namespace fast::train
