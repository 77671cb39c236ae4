#include "train/record/start_facts.hpp"

#include <algorithm>
#include <fast/core/host.hpp>
#include <limits>
#include <set>

namespace fast::train {
namespace {

Metric staleness_of(const WorkerOptions& options) {
  if (options.staleness == unbounded_staleness) return {"staleness", "inf"};
  return {"staleness", options.staleness};
}

/// An all-reduce and replicas that nobody reads have no spectrum.
double gap_of(const RunPlan& plan) {
  const bool averages =
      plan.options.worker.algorithm.traits().topology.scope == algorithm::Scope::neighbors;
  if (plan.all_reduces() || !averages) return std::numeric_limits<double>::quiet_NaN();
  return plan.overview.in_use().gap;
}

}  // namespace

std::vector<int> neighbors_of(const Schedule& schedule, int worker) {
  std::set<int> found;
  for (std::int64_t round = 0; round < std::max<std::int64_t>(1, schedule.period()); ++round) {
    const std::vector<int> read = schedule.at(round).in_neighbors(worker);
    found.insert(read.begin(), read.end());
  }
  return {found.begin(), found.end()};
}

std::vector<Metric> start_facts(const RunPlan& plan, const Replica& replica,
                                const MadeBefore& before) {
  const Overview& overview = plan.overview;
  const TrainerOptions& options = plan.options;
  std::vector<Metric> facts = {
      {"workers", overview.workers},
      {"topology", overview.topology},
      {"algorithm", overview.algorithm},
      staleness_of(options.worker),
      {"codec", overview.codec},
      {"exchange", overview.exchange},
      {"spectral_gap", gap_of(plan)},
      {"neighbors", neighbors_of(plan.schedule, plan.group.rank())},
      {"samples", plan.data.train.size()},
      {"parameters", replica.layout().parameter_count()},
      {"batch", options.batch_size},
      {"learning_rate", options.learning_rate.base},
      {"seed", options.seed},
      {"validation", validation_text(plan)},
      {"host", host_name()},
  };
  for (const auto& [name, text] : {std::pair{"data", &options.names.data},
                                   {"model", &options.names.model},
                                   {"optimizer", &options.names.optimizer}}) {
    if (!text->empty()) facts.emplace_back(name, *text);
  }
  if (options.clock_offset_s) facts.emplace_back("clock_offset", *options.clock_offset_s);
  if (before.by_run > 0) facts.emplace_back("resumed_from", before.by_run);
  if (before.by_worker > 0) facts.emplace_back("resumed_step", before.by_worker);
  return facts;
}

}  // namespace fast::train
