// Who trains on which samples: parts that never overlap, shuffled again in every epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

// How the training data is divided among workers: alike, or skewed by label as data that was
// gathered in different places is.

/// Even: all samples are dealt anew every epoch. Skewed: every worker keeps its own samples, whose
/// labels are as a draw from Dirichlet(alpha) has them; the smaller alpha, the fewer labels.
struct Sharding {
  std::optional<double> dirichlet_alpha;  ///< empty: even

  std::string text() const;  ///< "even" or "dirichlet:0.1"
};

/// Returns the sharding for a text "even" or "dirichlet:ALPHA". Throws Error(argument) on another
/// text and on an alpha that is not a positive number.
Sharding sharding_from(std::string_view text);

/// Returns every worker's samples, ascending. Each sample belongs to one worker, and parts differ
/// by one sample at most. Worker r's shares of the classes are drawn from Dirichlet(alpha). Then
/// the workers take turns. Each draws a class by its shares, among the classes that have samples
/// left, and takes one of its samples. (In Hsu et al. 2019, arXiv 1909.06335, the clients draw one
/// after the other.) The result is a function of the arguments alone. Throws Error(argument) on
/// fewer samples than workers and on an alpha that is not positive. Labels lie in [0, classes).
std::vector<std::vector<std::size_t>> dirichlet_parts(std::span<const std::int32_t> labels,
                                                      int classes, int workers, double alpha,
                                                      std::uint64_t seed);

/// One worker's part of the samples of each round, if workers have batches of different sizes. The
/// sizes of all workers sum up to workers × WorkerPart::batch_size.
struct RoundShare {
  std::size_t before = 0;      ///< samples of all workers with a lower rank
  std::size_t batch_size = 0;  ///< samples of this worker
};

/// One worker's part of a data set.
struct WorkerPart {
  std::size_t samples = 0;  ///< of the whole data set
  int workers = 1;
  int rank = 0;
  std::size_t batch_size = 64;  ///< of each worker; with `share`, the mean over all workers
  std::uint64_t seed = 0;       ///< the same on every worker
  /// This worker's own samples, at least samples / workers of them; empty: dealt anew every epoch.
  std::vector<std::size_t> own{};
  std::optional<RoundShare> share{};  ///< empty: all batches have batch_size samples
};

/// In every epoch all samples are shuffled, the same way on every worker. Worker r takes the r-th
/// block of rounds() × batch_size of them. No sample is seen twice in an epoch, by one worker or by
/// two. Every worker makes the same number of rounds, floor(floor(samples / workers) / batch_size).
/// The samples left over (fewer than workers × batch_size) are not used in the epoch; they are
/// others in each epoch. A worker with samples of its own takes as many of these instead. With a
/// RoundShare, a worker's block is as long as its batches are large. Rounds and samples of an epoch
/// are the same.
class Sampler {
 public:
  /// Throws Error(argument) on a batch size of 0 or larger than samples / workers, on a rank
  /// outside [0, workers), and on fewer own samples than samples / workers. It throws too on a
  /// share of no samples or outside of a round's samples, and on a share together with own samples.
  explicit Sampler(const WorkerPart& part);

  const WorkerPart& part() const { return part_; }
  std::size_t rounds() const { return rounds_; }                ///< an epoch, on every worker
  std::size_t batch_size() const { return share_.batch_size; }  ///< of this worker

  /// This worker's samples of an epoch in the order of its batches: rounds() × batch_size() indices
  /// into the data set. A function of the part and the epoch alone.
  std::vector<std::size_t> order(std::size_t epoch) const;

 private:
  WorkerPart part_;
  RoundShare share_;
  std::size_t rounds_ = 0;
};

/// A share that is not given: that of worker `rank` of equal ones. Throws Error(argument) on a
/// share of no samples, and on one that is not within the `workers` × `batch_size` samples of a
/// round.
RoundShare share_of(const std::optional<RoundShare>& given, int workers, int rank,
                    std::size_t batch_size);

/// Divides the samples of shards among the workers. The order reads each shard from its beginning
/// to its end, but for a shuffle within windows.
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
