#include "train/run/training_batches.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/topology/topology.hpp>
#include <iterator>
#include <utility>

#include "worker/start/startup.hpp"

namespace fast::train {
namespace {

std::set<int> living_readers(int of, const std::set<int>& gone, const Schedule& schedule) {
  std::set<int> readers;
  const std::int64_t rounds = rounds_with_all_edges(schedule);
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const int reader : schedule.at(round).out_neighbors(of)) {
      if (!gone.contains(reader)) readers.insert(reader);
    }
  }
  return readers;
}

}  // namespace

std::vector<std::size_t> samples_with_those_of(const std::set<int>& gone,
                                               const std::vector<std::vector<std::size_t>>& parts,
                                               const Schedule& schedule, int rank) {
  std::vector<std::size_t> samples = parts[static_cast<std::size_t>(rank)];
  for (const int worker : gone) {
    const std::set<int> readers = living_readers(worker, gone, schedule);
    const auto place = readers.find(rank);
    if (place == readers.end()) continue;
    const auto& theirs = parts[static_cast<std::size_t>(worker)];
    const auto turn = static_cast<std::size_t>(std::distance(readers.begin(), place));
    for (std::size_t s = turn; s < theirs.size(); s += readers.size()) samples.push_back(theirs[s]);
  }
  std::ranges::sort(samples);
  return samples;
}

PartPlan::PartPlan(data::Dataset samples, Schedule schedule, int rank, Options options)
    : samples_(std::move(samples)),
      schedule_(std::move(schedule)),
      rank_(rank),
      options_(std::move(options)) {}

/// Of skewed parts.
std::vector<std::vector<std::size_t>> PartPlan::all() const {
  return data::dirichlet_parts(samples_.labels(), samples_.classes(), schedule_.workers(),
                               *options_.sharding.dirichlet_alpha, options_.seed);
}

std::vector<std::size_t> PartPlan::own() const {
  if (!options_.sharding.dirichlet_alpha) return {};
  return all()[static_cast<std::size_t>(rank_)];
}

/// Silent workers of this host, and neighbors that were left out when they were last due.
std::set<int> PartPlan::gone(const std::vector<int>& lost, std::int64_t round,
                             std::size_t epoch_rounds) const {
  const std::int64_t period = schedule_.period_or(static_cast<std::int64_t>(epoch_rounds));
  std::set<int> all(lost.begin(), lost.end());
  for (const auto& [worker, missed_in] : missed_) {
    if (round - missed_in <= period * options_.steps) all.insert(worker);
  }
  return all;
}

/// Workers that come back get their samples back.
std::optional<std::vector<std::size_t>> PartPlan::take_over(const std::vector<int>& lost,
                                                            std::int64_t round,
                                                            std::size_t epoch_rounds) {
  if (!options_.take_over || !options_.sharding.dirichlet_alpha) return std::nullopt;
  const std::set<int> now = gone(lost, round, epoch_rounds);
  if (now == taken_from_) return std::nullopt;
  taken_from_ = now;
  const auto parts = all();
  const std::size_t own = parts[static_cast<std::size_t>(rank_)].size();
  auto samples = samples_with_those_of(now, parts, schedule_, rank_);
  if (options_.log) {
    options_.log(LogLevel::info,
                 fmt::format("worker {}: trains on its {} samples and on {} of "
                             "workers that are gone ({})",
                             rank_, own, samples.size() - own, fmt::join(now, ", ")));
  }
  return samples;
}

namespace {

/// Who takes which samples of a round.
struct BatchPart {
  int workers;
  int rank;
  std::optional<data::RoundShare> share;  ///< empty: even ones
};

BatchPart batch_part(const RunPlan& plan, const Shares& shares) {
  BatchPart part{plan.group.size(), plan.group.rank(), std::nullopt};
  if (!plan.options.balance.is_even()) part.share = shares.of(part.rank);
  return part;
}

data::Loader loader_of(const RunPlan& plan, const BatchPart& part, std::vector<std::size_t> own,
                       const std::shared_ptr<const data::StreamOrder>& order) {
  const TrainerOptions& options = plan.options;
  const data::Dataset& train = plan.data.train;
  const data::Normalization& normalization = plan.data.normalization;
  if (order) return {train, normalization, options.stream, order};
  if (!options.window && !train.is_streamed()) {
    return {train, normalization,
            data::Sampler({train.size(), part.workers, part.rank, options.batch_size, options.seed,
                           std::move(own), part.share})};
  }
  data::Windows windows{train.shards(), part.workers, part.rank, options.batch_size, options.seed};
  windows.window = options.window.value_or(windows.window);
  windows.share = part.share;
  return {train, normalization, data::WindowSampler(std::move(windows))};
}

data::Loader make_loader(const RunPlan& plan, const BatchPart& part, std::vector<std::size_t> own,
                         const std::shared_ptr<const data::StreamOrder>& order = nullptr) {
  const TrainerOptions& options = plan.options;
  data::Loader loader = loader_of(plan, part, std::move(own), order);
  if (options.augmentation) loader.augment(*options.augmentation, options.seed);
  constexpr std::uint64_t of_mixup = 0x6d69787570;  // other numbers than the augmentation's
  if (options.mixup > 0)
    loader.mix(options.mixup,
               mix_seed(options.seed, of_mixup, static_cast<std::uint64_t>(part.rank)));
  loader.threads(options.loader_threads);
  return loader;
}

/// Null without a stream.
std::shared_ptr<data::StreamOrder> stream_order_of(const RunPlan& plan) {
  if (!plan.options.stream) return nullptr;
  const auto workers = static_cast<std::size_t>(plan.group.size());
  const std::size_t batch_size = plan.options.batch_size;
  const std::size_t rounds =
      plan.data.train.size() / workers / std::max<std::size_t>(batch_size, 1);
  return std::make_shared<data::StreamOrder>(plan.group.size(), plan.group.rank(), batch_size,
                                             rounds);
}

std::shared_ptr<void> interrupter_of(const std::shared_ptr<data::SampleStream>& stream) {
  if (!stream) return nullptr;
  return {nullptr, [stream](void*) { stream->interrupt(); }};
}

PartPlan make_parts(const RunPlan& plan, const Schedule& schedule) {
  const TrainerOptions& options = plan.options;
  return {plan.data.train,
          schedule,
          plan.group.rank(),
          {.sharding = options.shards,
           .seed = options.seed,
           .steps = worker::rounds_per_combination(options.worker),
           .take_over = options.take_over,
           .log = options.worker.log}};
}

/// Of samples as they were dealt to the workers of `parts`. Made when they are asked for: batches
/// that are made ahead would share the memory of batches.
data::Prefetcher loader_of_earlier(const RunPlan& plan, const PartPlan& parts) {
  const BatchPart part{parts.schedule().workers(), plan.group.rank(), std::nullopt};
  return data::Prefetcher(make_loader(plan, part, parts.own()), {.ahead = 0});
}

}  // namespace

TrainingBatches::TrainingBatches(const RunPlan& plan)
    : parts_(make_parts(plan, plan.schedule)),
      stream_(plan.options.stream),
      stream_order_(stream_order_of(plan)),
      loader_(std::in_place,
              make_loader(plan, batch_part(plan, plan.shares), parts_.own(), stream_order_),
              plan.options.prefetch),
      batch_size_(plan.shares.of(plan.group.rank()).batch_size),
      interrupter_(interrupter_of(stream_)) {}

bool TrainingBatches::is_there(int epoch, std::size_t round) {
  if (!stream_) return true;
  const std::uint64_t end = stream_order_->round_end(static_cast<std::size_t>(epoch), round);
  if (known_end_ < end) known_end_ = stream_->extent().end;
  return known_end_ >= end;
}

void TrainingBatches::divide(const RunPlan& plan, const Shares& shares) {
  data::Loader loader = make_loader(plan, batch_part(plan, shares), {});
  loader_.reset();  // two prefetchers at once would share the memory of batches
  loader_.emplace(std::move(loader), plan.options.prefetch);
  batch_size_ = shares.of(plan.group.rank()).batch_size;
}

TrainingBatches::Span TrainingBatches::span_before(std::int64_t end, std::int64_t count) {
  return {std::max<std::int64_t>(0, end - count), end};
}

void TrainingBatches::note_left_out(std::int64_t count, int epoch, std::size_t round,
                                    std::int64_t back) {
  const auto rounds = static_cast<std::int64_t>(this->rounds());
  missed_.push_back(span_before(epoch * rounds + static_cast<std::int64_t>(round) - back, count));
}

void TrainingBatches::note_left_out(const RunPlan& plan, int workers, std::int64_t count,
                                    int epoch) {
  const PartPlan parts = make_parts(plan, plan.rule.make(workers));
  data::Prefetcher loader = loader_of_earlier(plan, parts);
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
  return next_of_now();
}

const Batch* TrainingBatches::next_of_now() {
  while (!missed_.empty() && missed_.front().is_empty()) missed_.pop_front();
  return missed_.empty() ? nullptr : take(*loader_, missed_.front());
}

void TrainingBatches::grow(const RunPlan& plan) {
  for (const Span& missed : missed_)
    if (!missed.is_empty()) earlier_.push_back({loader_of_earlier(plan, parts_), missed});
  std::deque<Earlier> earlier = std::move(earlier_);
  loader_.reset();  // two prefetchers at once would share the memory of batches
  *this = TrainingBatches(plan);
  earlier_ = std::move(earlier);
}

void TrainingBatches::take_over(const std::vector<int>& lost, std::int64_t round) {
  if (auto samples = parts_.take_over(lost, round, rounds())) loader_->own(std::move(*samples));
}

}  // namespace fast::train
