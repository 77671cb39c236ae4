// Who trains on which samples: parts that never overlap, shuffled again in every epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fast::data {

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

}  // namespace fast::data
