#include "train/run/training_batches.hpp"

#include <algorithm>
#include <utility>

namespace fast::train {
namespace {

data::Loader make_loader(const RunPlan& plan, std::vector<std::size_t> own) {
  const TrainerOptions& options = plan.options;
  data::Loader loader(plan.data.train, plan.data.normalization, plan.group.size(),
                      plan.group.rank(), options.batch_size, options.seed, std::move(own));
  if (options.augmentation) loader.augment(*options.augmentation, options.seed);
  loader.threads(options.loader_threads);
  return loader;
}

}  // namespace

TrainingBatches::TrainingBatches(const RunPlan& plan)
    : shards_(plan.data.train, plan.schedule, plan.group.rank(),
              {.sharding = plan.options.shards,
               .seed = plan.options.seed,
               .steps = plan.options.worker.mix_every *
                        plan.options.worker.algorithm.declaration().combine_every,
               .take_over = plan.options.take_over,
               .log = plan.options.worker.log}),
      loader_(make_loader(plan, shards_.own()), plan.options.prefetch) {}

void TrainingBatches::note_left_out(std::int64_t count, int epoch, std::size_t round) {
  const auto rounds = static_cast<std::int64_t>(this->rounds());
  end_missed_ = epoch * rounds + static_cast<std::int64_t>(round);
  next_missed_ = std::max<std::int64_t>(0, end_missed_ - count);
}

const Batch* TrainingBatches::next_missed() {
  if (next_missed_ >= end_missed_) return nullptr;
  const auto place = static_cast<std::size_t>(next_missed_++);
  return &loader_.batch(place / rounds(), place % rounds());
}

void TrainingBatches::take_over(const std::vector<int>& lost, std::int64_t round) {
  if (auto samples = shards_.take_over(lost, round, rounds())) loader_.own(std::move(*samples));
}

}  // namespace fast::train
