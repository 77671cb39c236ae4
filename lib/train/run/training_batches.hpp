// The batches that a worker trains on.
#pragma once

#include <fast/data/prefetcher.hpp>

#include "train/run/run_plan.hpp"
#include "train/run/shard_plan.hpp"

namespace fast::train {

/// Made ahead by a thread when the options say so, of the samples that ShardPlan gives the worker.
class TrainingBatches {
 public:
  /// Throws as data::Loader does.
  explicit TrainingBatches(const RunPlan& plan);

  std::size_t rounds() const { return loader_.rounds(); }  ///< of an epoch
  /// Valid until the next one is asked for.
  const Batch& batch(int epoch, std::size_t round) {
    return loader_.batch(static_cast<std::size_t>(epoch), round);
  }

  /// A neighbor was left out of a round.
  void note_missed(int neighbor, std::int64_t round) { shards_.note_missed(neighbor, round); }
  /// The worker before this one on its seat has left out `count` batches, before (epoch, round).
  void note_left_out(std::int64_t count, int epoch, std::size_t round);
  /// The next of those, in their order; null: none is left. Valid until the next batch is asked
  /// for.
  const Batch* next_missed();
  /// Between epochs, as ShardPlan::take_over().
  void take_over(const std::vector<int>& lost, std::int64_t round);

 private:
  ShardPlan shards_;
  data::Prefetcher loader_;
  std::int64_t next_missed_ = 0, end_missed_ = 0;  ///< batches since the first epoch
};

}  // namespace fast::train
