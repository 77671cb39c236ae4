#include "pipeline/runs.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/synthetic.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/load.hpp>
#include <thread>

using namespace fast;

namespace pipeline {
namespace {

constexpr std::size_t train_samples = 3000, test_samples = 500;
constexpr Seconds start_limit{300};

nn::SgdOptions optimizer_of(const Settings& settings) {
  return {.learning_rate = settings.learning_rate};
}

data::Loader loader_of(const Settings& settings, const Task& task, int replicas, int replica) {
  return {task.train, data::Normalization{}, replicas, replica, settings.batch, settings.seed};
}

const Batch& batch_of(data::Loader& loader, std::size_t step) {
  return loader.batch(step / loader.rounds(), step % loader.rounds());
}

}  // namespace

Plan plan_of(const mpi::Communicator& world, const Settings& settings) {
  Plan plan;
  plan.model = model_of(settings);
  plan.stages = nn::stages_of(plan.model, settings.cuts);
  plan.micro_batches = settings.micro_batches;
  const auto stages = static_cast<int>(plan.stages.size());
  require(world.size() % stages == 0, ErrorKind::argument,
          "{} ranks for {} stages; a multiple of {} is required, or other cuts", world.size(),
          stages, stages);
  return plan;
}

Task make_task(std::uint64_t seed) {
  const auto all = data::synthetic_classification(train_samples + test_samples, {1, 28, 28}, 10,
                                                  seed, /*noise*/ 1);
  return {all.slice(0, train_samples), all.slice(train_samples, test_samples)};
}

void check_batches(const mpi::Communicator& world, const Settings& settings, const Task& task) {
  const auto stages = settings.whole ? 1 : static_cast<int>(settings.cuts.size()) + 1;
  loader_of(settings, task, world.size() / stages, 0);
}

SplitRun::SplitRun(const mpi::Communicator& world, const Settings& settings, const Task& task)
    : SplitRun(world, settings, task, plan_of(world, settings)) {}

SplitRun::SplitRun(const mpi::Communicator& world, const Settings& settings, const Task& task,
                   const Plan& plan)
    : replica_(world.rank() / static_cast<int>(plan.stages.size())),
      options_{.learning_rate = settings.learning_rate},
      pause_(settings.step_ms / 1000),
      group_(
          world.split(world.rank() % static_cast<int>(plan.stages.size()), Deadline(start_limit))),
      pipeline_(world.split(replica_, Deadline(start_limit)), plan, settings.seed,
                optimizer_of(settings), Seconds(settings.deadline_s)),
      loader_(loader_of(settings, task, group_.size(), replica_)),
      worker_(group_, topology_by_name(settings.topology), pipeline_.tensors(),
              worker_options(settings)) {}

std::optional<double> SplitRun::step() {
  std::this_thread::sleep_for(pause_);
  const Batch& batch = batch_of(loader_, made_++);
  std::optional<double> loss;
  worker_.begin_round();
  try {
    loss = pipeline_.train(batch);
  } catch (const Error& error) {
    leave(error);
    return std::nullopt;
  }
  try {
    loss ? worker_.end_round(*loss, options_) : worker_.end_round(options_);
  } catch (...) {
    fail_together();
  }
  return loss;
}

/// Publishes the weights as they were before this step, and leaves.
void SplitRun::leave(const Error& reason) {
  try {
    if (reason.kind() != ErrorKind::peer_failed && reason.kind() != ErrorKind::deadline)
      throw reason;
    worker_.end_round(options_);
    worker_.leave();
  } catch (const Error&) {  // the rule averages over all workers, or the group is gone, too
    const bool is_first = worker_.abandon();
    if (is_first) throw Error(ErrorKind::mpi, reason.what());
    throw reason;
  }
  group_.disable_collectives();
  why_left_ = reason.what();
}

/// The other workers of this stage end, too; one of them reports the error.
void SplitRun::fail_together() { worker::rethrow_as_failed(worker_.abandon()); }

SplitRun::Finish SplitRun::finish() {
  worker_.await_finish();
  const Departures gone = worker_.departed();
  std::vector<int> missing = gone.lost;
  missing.insert(missing.end(), gone.left.begin(), gone.left.end());
  try {
    missing = pipeline_.of_any_stage(missing, replicas());
  } catch (const Error& error) {
    group_.disable_collectives();
    why_left_ = error.what();
    return {.all = false, .is_first = false};
  }
  if (!missing.empty()) group_.disable_collectives();
  Finish result{.all = missing.empty(), .is_first = true};
  for (int other = 0; other < replica_; ++other)
    if (std::find(missing.begin(), missing.end(), other) == missing.end()) result.is_first = false;
  return result;
}

void SplitRun::take_mean_model() { worker_.mean_model(pipeline_.tensors()); }

WholeRun::WholeRun(const mpi::Communicator& workers, const Settings& settings, const Task& task)
    : options_{.learning_rate = settings.learning_rate},
      backend_(nn::make_backend<float>(model_of(settings), settings.seed,
                                       {.optimizer = optimizer_of(settings),
                                        .accumulate = static_cast<int>(settings.micro_batches)})),
      loader_(loader_of(settings, task, workers.size(), workers.rank())),
      worker_(workers, topology_by_name(settings.topology), backend_->parameters(),
              worker_options(settings)) {}

double WholeRun::step() {
  const Batch& batch = batch_of(loader_, made_++);
  return worker_.step([&] { return backend_->train(batch); }, options_);
}

}  // namespace pipeline
