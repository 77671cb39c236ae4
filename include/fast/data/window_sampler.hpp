// Who trains on which samples of shards, in an order that reads each shard from its beginning to
// its end, but for a shuffle within windows.
#pragma once

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
  std::size_t batch_size = 64;  ///< of each worker
  std::uint64_t seed = 0;       ///< the same on every worker
  std::size_t window = 10'000;  ///< samples that are shuffled together
};

/// In every epoch the shards are put in an order by (seed, epoch), the same on every worker, and
/// their samples are counted through. Worker r owns the r-th of `workers` equal blocks of them: it
/// reads these shards only, whole but for the two at the block's ends. It cuts its block into
/// windows of `window` samples and shuffles each window by (seed, epoch, rank). No sample is seen
/// twice in an epoch, by one worker or by two. All workers make the same number of rounds,
/// floor(floor(samples / workers) / batch_size); fewer than workers × batch_size samples sit the
/// epoch out, others in each.
class WindowSampler {
 public:
  /// Throws Error(argument) on a batch size or window of 0, on a batch that is larger than a
  /// worker's block, and on a rank outside [0, workers).
  explicit WindowSampler(Windows windows);

  const Windows& windows() const { return windows_; }
  std::size_t rounds() const { return rounds_; }  ///< an epoch, on every worker

  /// The samples of a batch: numbers over all shards, in the order of `Windows::shards`. A function
  /// of the arguments alone, whatever was asked before; memory of one window and one order of the
  /// shards. `round` is below rounds().
  std::vector<std::size_t> batch(std::size_t epoch, std::size_t round);

  /// The shards that this worker reads in an epoch, in the order in which it reads them.
  std::vector<std::size_t> shards_of(std::size_t epoch) const;

 private:
  struct Deal;
  struct Place {
    std::size_t epoch = 0, window = 0;
    bool operator==(const Place&) const = default;
  };
  Deal deal(std::size_t epoch) const;
  const std::vector<std::size_t>& window(Place place);

  Windows windows_;
  std::vector<std::size_t> first_;  ///< sample of each shard
  std::size_t block_ = 0;           ///< samples of a worker
  std::size_t rounds_ = 0;
  std::optional<Place> at_;  ///< whose samples shuffled_ are
  std::vector<std::size_t> shuffled_;
};

}  // namespace fast::data
