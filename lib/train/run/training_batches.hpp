// The batches that a worker trains on.
#pragma once

#include <fast/data/prefetcher.hpp>

#include <deque>

#include "train/run/part_plan.hpp"
#include "train/run/run_plan.hpp"

namespace fast::train {

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

  /// A neighbor was left out of a round.
  void note_missed(int neighbor, std::int64_t round) { parts_.note_missed(neighbor, round); }
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
