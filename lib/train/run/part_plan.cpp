#include "train/run/part_plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/topology/parts.hpp>
#include <utility>

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
  std::sort(samples.begin(), samples.end());
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

}  // namespace fast::train
