#include "train/take_over.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/log.hpp>

#include "train/training_run.hpp"

namespace fast::train {
namespace {

constexpr std::int64_t most_rounds = 64;  ///< looked at, of schedules without a short period

std::set<int> living_readers(int of, const std::set<int>& gone, const Schedule& schedule) {
  std::set<int> readers;
  const std::int64_t period = schedule.period();
  const std::int64_t rounds = period > 0 ? std::min(period, most_rounds) : most_rounds;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const int reader : schedule.at(round).out_neighbors(of)) {
      if (!gone.contains(reader)) readers.insert(reader);
    }
  }
  return readers;
}

}  // namespace

std::vector<std::size_t> samples_with_those_of(const std::set<int>& gone,
                                               const std::vector<std::vector<std::size_t>>& shards,
                                               const Schedule& schedule, int rank) {
  std::vector<std::size_t> samples = shards[static_cast<std::size_t>(rank)];
  for (const int worker : gone) {
    const std::set<int> readers = living_readers(worker, gone, schedule);
    const auto place = readers.find(rank);
    if (place == readers.end()) continue;
    const auto& theirs = shards[static_cast<std::size_t>(worker)];
    const auto turn = static_cast<std::size_t>(std::distance(readers.begin(), place));
    for (std::size_t s = turn; s < theirs.size(); s += readers.size()) samples.push_back(theirs[s]);
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

/// Those silent on this host, and neighbors that were when they were last due.
std::set<int> Training::gone() const {
  const auto period =
      schedule_->period() > 0 ? schedule_->period() : static_cast<std::int64_t>(loader_->rounds());
  const auto& lost = worker_->lost();
  std::set<int> all(lost.begin(), lost.end());
  for (const auto& [worker, round] : missed_) {
    if (worker_->round() - round <= period) all.insert(worker);
  }
  return all;
}

/// Between epochs: those who come back get their samples back.
void Training::take_over_samples() {
  if (!options_.take_over || !options_.shards.dirichlet_alpha) return;
  const std::set<int> now = gone();
  if (now == taken_from_) return;
  taken_from_ = now;
  const auto shards = all_shards();
  const std::size_t own = shards[static_cast<std::size_t>(group_.rank())].size();
  auto samples = samples_with_those_of(now, shards, *schedule_, group_.rank());
  if (options_.worker.log) {
    options_.worker.log(
        LogLevel::info,
        fmt::format("worker {}: trains on its {} samples and on {} of workers "
                    "that are gone ({})",
                    group_.rank(), own, samples.size() - own, fmt::join(now, ", ")));
  }
  loader_->own(std::move(samples));
}

}  // namespace fast::train
