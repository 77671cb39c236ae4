// Divides the samples of shards among the workers. The order reads each shard from its beginning to
// its end, but for a shuffle within windows.
#pragma once

#include <fast/data/sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace fast::data {

struct Windows {
  std::vector<std::size_t> shards;  ///< samples of each shard
  int workers = 1;
  int rank = 0;
  std::size_t batch_size = 64;        ///< of each worker; with `share`, the mean over all workers
  std::uint64_t seed = 0;             ///< the same on every worker
  std::size_t window = 10'000;        ///< samples that are shuffled together
  std::optional<RoundShare> share{};  ///< empty: all batches have batch_size samples
};

/// In every epoch the shards are put in an order by (seed, epoch), the same on every worker, and
/// their samples are counted through. Worker r owns the r-th of `workers` equal blocks of them: it
/// reads these shards only, whole but for the two at the block's ends. It cuts its block into
/// windows of `window` samples and shuffles each window by (seed, epoch, rank). No sample is seen
/// twice in an epoch, by one worker or by two. All workers make the same number of rounds,
/// floor(floor(samples / workers) / batch_size); fewer than workers × batch_size samples sit the
/// epoch out, others in each. With a RoundShare, blocks are in proportion to the sizes of batches.
class WindowSampler {
 public:
  /// Throws Error(argument) on a batch size or window of 0 and on a batch that is larger than a
  /// worker's block. It throws too on a rank outside [0, workers), and on a share as share_of()
  /// does.
  explicit WindowSampler(Windows windows);

  const Windows& windows() const { return windows_; }
  std::size_t rounds() const { return rounds_; }                ///< an epoch, on every worker
  std::size_t batch_size() const { return share_.batch_size; }  ///< of this worker

  /// The samples of a batch: numbers over all shards, in the order of `Windows::shards`. A function
  /// of the arguments alone, whatever was asked before; memory of one window and one order of the
  /// shards. `round` is below rounds().
  std::vector<std::size_t> batch(std::size_t epoch, std::size_t round);

  /// The shards that this worker reads in an epoch, in the order in which it reads them.
  std::vector<std::size_t> shards_of(std::size_t epoch) const;

 private:
  struct Deal;
  struct Position {
    std::size_t epoch = 0, window = 0;
    bool operator==(const Position&) const = default;
  };
  std::size_t end_of(std::size_t batches, std::size_t block) const;
  Deal deal(std::size_t epoch) const;
  const std::vector<std::size_t>& window(Position position);

  Windows windows_;
  std::vector<std::size_t> first_;  ///< sample of each shard
  RoundShare share_;
  std::size_t begin_ = 0, end_ = 0;  ///< of this worker's block, in the order of an epoch
  std::size_t rounds_ = 0;
  std::optional<Position> at_;  ///< whose samples shuffled_ are
  std::vector<std::size_t> shuffled_;
};

}  // namespace fast::data
