// The results of a run, as a table for people and as JSON for programs.
#pragma once

#include <fast/core/measure.hpp>
#include <fast/worker/worker.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fast::train {

/// A measure of the task on the test samples.
struct TestMeasure {
  std::string name;  ///< "mae"
  Measure::Form form = Measure::Form::mean;
  double mean_model = 0;
  double worst_worker = 0;
};

/// Shares and accuracies are fractions in [0, 1].
struct Summary {
  /// For tasks that have more than the accuracy, or others: these measures stand in the place of
  /// test_accuracy_mean_model and test_accuracy_worst_worker.
  std::vector<TestMeasure> measures;
  double test_accuracy_mean_model = 0;
  double test_accuracy_worst_worker = 0;
  double test_loss_mean_model = 0;  ///< per sample that can be read
  double consensus_distance = 0;    ///< sqrt(mean_i ‖x_i - x̄‖²)
  /// The rate of all workers, over the training loop. Where the figures are those of one worker, it
  /// is that of the workers that lived, if they made as many rounds as that one.
  double samples_per_second = 0;
  double wait_fraction = 0;                    ///< of the training loop: waiting for neighbors
  double publish_fraction = 0;                 ///< making the weights readable
  double mix_fraction = 0;                     ///< averaging
  double fresh_fraction = 0;                   ///< neighbor reads that saw a version not yet read
  double sent_fraction = 0;                    ///< of the messages due, not held back by a rule
  double bytes_sent_per_worker_per_round = 0;  ///< as coded
  std::uint64_t rounds = 0;
  std::uint64_t closing_rounds = 0;  ///< of averaging only, after those
  std::uint64_t epochs = 0;
  std::uint64_t lr_reductions = 0;  ///< of the learning rate, by the schedule plateau
  int workers = 0;
  std::string topology;
  double spectral_gap = 0;  ///< of the weights that training used
  /// The algorithm has made the mixing weights lazy, (I+W)/2.
  bool lazy_weights = false;
  bool connected = true;  ///< every worker's values reach every other worker
  std::string exchange;
  std::string algorithm;
  std::string codec;
  std::string staleness;       ///< a number or "inf"
  double seconds = 0;          ///< of the training loop
  std::uint64_t rejoined = 0;  ///< how often a worker caught up by adopting its neighbors' weights
  std::uint64_t healed = 0;    ///< steps left out as their loss or weights were not finite
  /// What the readers of each worker have kept of it, with robust averaging; else empty.
  std::vector<NeighborShare> shares;
  /// Workers that the run lost. The figures are then those of one survivor, and the mean model is
  /// that of its part of the survivors.
  std::vector<int> lost;
  /// Workers that were lost and whose seats spares have taken. The figures are then those of one
  /// worker.
  std::vector<int> replaced;
  /// Workers that have left as they were asked to. The figures are then those of one worker, and
  /// the mean model is that of the others.
  std::vector<int> left;
  /// Workers that have joined since training began. The figures are then those of one worker.
  std::vector<int> joined;
  /// This worker has ended without the others, which may have lost it.
  bool ended_alone = false;
  bool has_left = false;                ///< this worker is one of them: nothing else is known
  std::uint64_t repeated_samples = 0;   ///< that a spare used again, as far as is known
  std::vector<std::vector<int>> parts;  ///< without both, as living_parts() has them; else empty
  bool stopped = false;                 ///< ended early on request
  bool evaluated = true;  ///< false: saved to continue later; only rounds and epochs are known
  std::string unsaved;    ///< why something could not be saved; empty: everything is saved

  /// The workers that have begun are those that have ended. Otherwise collective calls of the group
  /// do not return on all of them.
  bool same_workers() const;

  /// The measures, or the accuracy.
  std::vector<TestMeasure> results() const;

  /// One JSON object with a key for each field, named and ordered as here; for `measures`, the keys
  /// test_NAME_mean_model and test_NAME_worst_worker. Values that are not finite are null.
  /// So are results, speeds, shares of time and bytes of a run that is to be continued.
  std::string to_json() const;

  /// Two columns, one row for each field. An all-reduce has no rows about neighbors.
  std::string to_table() const;
  /// The same without what the opening table of the run has said.
  std::string results_table() const;

  /// Writes to_json() and a newline. Throws Error(resource) when the file cannot be written.
  void write_json(const std::filesystem::path& path) const;

 private:
  std::string table(bool with_run) const;
};

}  // namespace fast::train
