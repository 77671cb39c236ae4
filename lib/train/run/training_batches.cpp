#include "train/run/training_batches.hpp"

#include <algorithm>
#include <utility>

namespace fast::train {
namespace {

data::Loader loader_of(const RunPlan& plan, int workers, std::vector<std::size_t> own) {
  const TrainerOptions& options = plan.options;
  const data::Dataset& train = plan.data.train;
  if (!options.window && !train.is_streamed()) {
    return {train,        plan.data.normalization, workers, plan.group.rank(), options.batch_size,
            options.seed, std::move(own)};
  }
  data::Windows windows{train.shards(), workers, plan.group.rank(), options.batch_size,
                        options.seed};
  windows.window = options.window.value_or(windows.window);
  return {train, plan.data.normalization, data::WindowSampler(std::move(windows))};
}

data::Loader make_loader(const RunPlan& plan, int workers, std::vector<std::size_t> own) {
  const TrainerOptions& options = plan.options;
  data::Loader loader = loader_of(plan, workers, std::move(own));
  if (options.augmentation) loader.augment(*options.augmentation, options.seed);
  loader.threads(options.loader_threads);
  return loader;
}

ShardPlan make_shards(const RunPlan& plan, const Schedule& schedule) {
  const TrainerOptions& options = plan.options;
  return {plan.data.train,
          schedule,
          plan.group.rank(),
          {.sharding = options.shards,
           .seed = options.seed,
           .steps = options.worker.mix_every * options.worker.algorithm.declaration().combine_every,
           .take_over = options.take_over,
           .log = options.worker.log}};
}

}  // namespace

TrainingBatches::TrainingBatches(const RunPlan& plan)
    : shards_(make_shards(plan, plan.schedule)),
      loader_(make_loader(plan, plan.group.size(), shards_.own()), plan.options.prefetch) {}

TrainingBatches::Span TrainingBatches::span_before(std::int64_t end, std::int64_t count) {
  return {std::max<std::int64_t>(0, end - count), end};
}

void TrainingBatches::note_left_out(std::int64_t count, int epoch, std::size_t round) {
  const auto rounds = static_cast<std::int64_t>(this->rounds());
  missed_ = span_before(epoch * rounds + static_cast<std::int64_t>(round), count);
}

void TrainingBatches::note_left_out(const RunPlan& plan, int workers, std::int64_t count,
                                    int epoch) {
  const ShardPlan shards = make_shards(plan, plan.rule.make(workers));
  data::Prefetcher loader(make_loader(plan, workers, shards.own()), {.ahead = 0});
  const auto rounds = static_cast<std::int64_t>(loader.rounds());
  earlier_.push_back({std::move(loader), span_before(epoch * rounds, count)});
}

const Batch* TrainingBatches::take(data::Prefetcher& loader, Span& missed) {
  const auto place = static_cast<std::size_t>(missed.next++);
  return &loader.batch(place / loader.rounds(), place % loader.rounds());
}

const Batch* TrainingBatches::next_missed() {
  while (!earlier_.empty() && earlier_.front().missed.is_empty()) earlier_.pop_front();
  if (!earlier_.empty()) return take(earlier_.front().loader, earlier_.front().missed);
  return missed_.is_empty() ? nullptr : take(loader_, missed_);
}

void TrainingBatches::grow(const RunPlan& plan) {
  TrainingBatches now(plan);
  std::swap(*this, now);
  earlier_ = std::move(now.earlier_);
  if (!now.missed_.is_empty()) earlier_.push_back({std::move(now.loader_), now.missed_});
}

void TrainingBatches::take_over(const std::vector<int>& lost, std::int64_t round) {
  if (auto samples = shards_.take_over(lost, round, rounds())) loader_.own(std::move(*samples));
}

}  // namespace fast::train
