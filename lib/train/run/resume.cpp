#include "train/run/resume.hpp"

#include <algorithm>
#include <fast/core/error.hpp>

namespace fast::train {

std::vector<int> sources_of(const Manifest& manifest, int rank, int workers) {
  if (manifest.workers <= workers) return {rank % manifest.workers};
  std::vector<int> group;
  for (int w = manifest.workers * rank / workers; w < manifest.workers * (rank + 1) / workers; ++w)
    group.push_back(w);
  return group;
}

void Resume::run() {
  if (!plan_.options.checkpoints.resume) return;
  agree(plan_.group, plan_.deadline(), "Trainer: resuming", [this] { find(); });
  const bool exact = is_exact();
  agree(plan_.group, plan_.deadline(), "Trainer: resuming", [&] { load(exact); });
  if (exact) {
    state_.restore_rule(*own_);
  } else {
    replica_.worker().republish();
  }
  state_.position().count_from(manifest_.round);
  if (plan_.group.rank() != 0) return;
  plan_.log(LogLevel::info, fmt::format("resuming from round {} of {}", manifest_.round,
                                        manifest_.directory.string()));
}

void Resume::find() {
  manifest_ = find_checkpoint(*plan_.options.checkpoints.resume);
  if (manifest_.workers != plan_.group.size()) return;
  try {
    own_ = read_shard(manifest_, plan_.group.rank());
  } catch (const Error& error) {
    if (plan_.options.checkpoints.strict) throw;
    plan_.log(LogLevel::warning, fmt::format("worker {}: {}; taking its neighbors' average",
                                             plan_.group.rank(), error.what()));
  }
}

/// Collective.
bool Resume::is_exact() const {
  const std::int64_t own_round = own_ ? metadata_number(own_->metadata(), "fast.round") : -1;
  const std::string mine = fmt::format("{} {}", manifest_.round, own_round);
  const auto all = plan_.group.all_gather(mine, plan_.deadline(), "Trainer: resuming");
  const bool whole = std::all_of(all.begin(), all.end(),
                                 [](const std::string& one) { return !one.ends_with(" -1"); });
  const bool alike = std::all_of(all.begin(), all.end(),
                                 [&](const std::string& one) { return one == all.front(); });
  return whole && (alike || plan_.options.worker.staleness != 0);
}

void Resume::load(bool exact) {
  if (own_) {
    state_.read(*own_);
  } else {
    load_average();
    take_any_place();
  }
  if (exact) state_.read_memory(*own_);
  replica_.home().upload();
  if (!exact) replica_.restart_ema();
}

/// Of as many workers: the neighbors' average, or everybody's where no neighbor's file is whole.
void Resume::load_average() {
  const Group& group = plan_.group;
  std::vector<int> sources = sources_of(manifest_, group.rank(), group.size());
  if (manifest_.workers == group.size()) sources = plan_.schedule.at(0).in_neighbors(group.rank());
  try {
    state_.read_average(manifest_, sources, plan_.options.worker.log);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data || plan_.options.checkpoints.strict) throw;
    std::vector<int> everybody;
    for (int w = 0; w < manifest_.workers; ++w) everybody.push_back(w);
    state_.read_average(manifest_, everybody, plan_.options.worker.log);
  }
}

/// The place in the data of the first file that can be read.
void Resume::take_any_place() {
  for (const WorkerFile& shard : manifest_.shards) {
    try {
      state_.position().take_place(read_shard(manifest_, shard.worker).metadata());
      return;
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace fast::train
