// Who trains on which samples: shards that never overlap, shuffled anew every epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fast::data {

/// One worker's part of a data set.
struct Shard {
  std::size_t samples = 0;  ///< of the whole data set
  int workers = 1;
  int rank = 0;
  std::size_t batch_size = 64;  ///< of each worker
  std::uint64_t seed = 0;       ///< the same on every worker
  /// This worker's own samples, at least samples / workers of them; empty: dealt anew every epoch.
  std::vector<std::size_t> own{};
};

/// In every epoch all samples are shuffled, the same way on every worker, and worker r takes the
/// r-th block of rounds() × batch_size of them: no sample is seen twice in an epoch, by one worker
/// or by two. Every worker makes the same number of rounds, floor(floor(samples / workers) /
/// batch_size); the samples left over (fewer than workers × batch_size) sit the epoch out, others
/// in each. A worker with samples of its own takes as many of these instead.
class Sampler {
 public:
  /// Throws Error(argument) on a batch size of 0 or larger than samples / workers, on a rank
  /// outside [0, workers), and on fewer own samples than samples / workers.
  explicit Sampler(const Shard& shard);

  const Shard& shard() const { return shard_; }
  std::size_t rounds() const { return rounds_; }  ///< an epoch, on every worker

  /// This worker's samples of an epoch in the order of its batches: rounds() × batch_size indices
  /// into the data set. A function of the shard and the epoch alone.
  std::vector<std::size_t> order(std::size_t epoch) const;

 private:
  Shard shard_;
  std::size_t rounds_ = 0;
};

}  // namespace fast::data
