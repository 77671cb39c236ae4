// The batches that a worker trains on.
#pragma once

#include <fast/core/observer.hpp>
#include <fast/data/dataset.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/sampler.hpp>
#include <fast/topology/topology.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "train/run/training_setup.hpp"

namespace fast::train {

// Which samples a worker trains on, also when other workers are gone.

/// The samples of worker `rank` when the workers in `gone` are gone: its own samples of `parts`,
/// and its part of theirs. The living workers that read a gone worker in some round divide its
/// samples evenly. Ascending. Workers that agree about who is gone take every sample once.
std::vector<std::size_t> samples_with_those_of(const std::set<int>& gone,
                                               const std::vector<std::vector<std::size_t>>& parts,
                                               const Schedule& schedule, int rank);

/// Of one worker. Only skewed parts have owners; even ones are dealt again in every epoch.
class PartPlan {
 public:
  struct Options {
    data::Sharding sharding;
    std::uint64_t seed = 1;
    std::int64_t steps = 1;  ///< between two combinations
    bool take_over = false;  ///< of samples whose owner is gone
    LogSink log;
  };
  PartPlan(data::Dataset samples, Schedule schedule, int rank, Options options);

  const Schedule& schedule() const { return schedule_; }  ///< of those to whom samples are dealt
  /// The worker's own samples; empty with even parts.
  std::vector<std::size_t> own() const;

  /// A neighbor was left out of a round.
  void note_missed(int neighbor, std::int64_t round) { missed_[neighbor] = round; }
  /// Between epochs of `epoch_rounds`, before round `round`; `lost` are silent workers of this
  /// host. The samples from now on; empty: as before.
  std::optional<std::vector<std::size_t>> take_over(const std::vector<int>& lost,
                                                    std::int64_t round, std::size_t epoch_rounds);

 private:
  std::vector<std::vector<std::size_t>> all() const;
  std::set<int> gone(const std::vector<int>& lost, std::int64_t round,
                     std::size_t epoch_rounds) const;

  data::Dataset samples_;
  Schedule schedule_;
  int rank_;
  Options options_;
  std::map<int, std::int64_t> missed_;  ///< by neighbor: the last such round
  std::set<int> taken_from_;            ///< whose samples have been shared out
};

/// Made ahead by a thread when the options say so, of the samples that PartPlan gives the worker.
class TrainingBatches {
 public:
  /// Throws as data::Loader does.
  explicit TrainingBatches(const RunPlan& plan);

  std::size_t rounds() const { return loader_->rounds(); }  ///< of an epoch
  std::size_t batch_size() const { return batch_size_; }    ///< unless samples cannot be read
  /// Valid until the next one is asked for.
  const Batch& batch(int epoch, std::size_t round) {
    return loader_->batch(static_cast<std::size_t>(epoch), round);
  }

  /// Of a stream: which samples each round takes; null: the samples are in a data set.
  const std::shared_ptr<data::StreamOrder>& stream_order() const { return stream_order_; }
  /// Whether the samples of all workers for this round have come. Asks the stream.
  bool is_there(int epoch, std::size_t round);

  PartPlan& parts() { return parts_; }
  /// Workers before this one on its seat have left out `count` batches, until `back` rounds before
  /// (epoch, round). The oldest ones are noted first.
  void note_left_out(std::int64_t count, int epoch, std::size_t round, std::int64_t back = 0);
  /// The same of batches before epoch `epoch`, in which the workers became more than `workers`.
  void note_left_out(const RunPlan& plan, int workers, std::int64_t count, int epoch);
  /// The next of those, in their order; null: none is left. Valid until the next batch is asked
  /// for.
  const Batch* next_missed();
  /// The samples are dealt to as many workers as the plan now has. What was left out before is not
  /// forgotten.
  void grow(const RunPlan& plan);
  /// Between epochs: the samples of the rounds to come are divided by these shares. Only with even
  /// sharding.
  void divide(const RunPlan& plan, const Shares& shares);
  /// Between epochs, as PartPlan::take_over().
  void take_over(const std::vector<int>& lost, std::int64_t round);

 private:
  /// Batches since the first epoch.
  struct Span {
    std::int64_t next = 0, end = 0;
    bool is_empty() const { return next >= end; }
  };
  /// Of samples as they were dealt to fewer workers.
  struct Earlier {
    data::Prefetcher loader;
    Span missed;
  };
  static Span span_before(std::int64_t end, std::int64_t count);
  static const Batch* take(data::Prefetcher& loader, Span& missed);
  const Batch* next_of_now();

  PartPlan parts_;
  std::shared_ptr<data::SampleStream> stream_;  ///< null: the samples are in a data set
  std::shared_ptr<data::StreamOrder> stream_order_;
  std::uint64_t known_end_ = 0;             ///< of the stream
  std::optional<data::Prefetcher> loader_;  ///< never empty between calls
  std::size_t batch_size_;
  std::deque<Span> missed_;
  std::deque<Earlier> earlier_;        ///< the oldest first
  std::shared_ptr<void> interrupter_;  ///< of the stream; its end comes before the prefetcher's
};

}  // namespace fast::train
