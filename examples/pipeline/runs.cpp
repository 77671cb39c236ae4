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

Plan plan_of(const Settings& settings) {
  Plan plan;
  plan.model = model_of(settings);
  plan.stages = nn::stages_of(plan.model, settings.cuts);
  plan.micro_batches = settings.micro_batches;
  return plan;
}

Task make_task(std::uint64_t seed) {
  const auto all = data::synthetic_classification(train_samples + test_samples, {1, 28, 28}, 10,
                                                  seed, /*noise*/ 1);
  return {all.slice(0, train_samples), all.slice(train_samples, test_samples)};
}

void check_batches(const mpi::Communicator& world, const Settings& settings, const Task& task) {
  const auto stages = settings.whole ? 1 : static_cast<int>(settings.cuts.size()) + 1;
  loader_of(settings, task, std::max(1, world.size() / stages), 0);
}

SplitRun::SplitRun(const mpi::Communicator& world, const Settings& settings, const Task& task)
    : options_{.learning_rate = settings.learning_rate},
      pause_(settings.step_ms / 1000),
      plan_(plan_of(settings)),
      replicas_(world, static_cast<int>(plan_.stages.size())),
      pipeline_(replicas_.inside(), plan_, settings.seed, optimizer_of(settings),
                Seconds(settings.deadline_s)),
      loader_(loader_of(settings, task, replicas_.count(), replicas_.index())),
      worker_(replicas_.make_worker(topology_by_name(settings.topology), pipeline_.tensors(),
                                    worker_options(settings))) {}

std::optional<double> SplitRun::step() {
  std::this_thread::sleep_for(pause_);
  std::optional<double> loss;
  worker_.step([&] { loss = pipeline_.train(batch_of(loader_, made_++)); }, options_);
  return loss;
}

bool SplitRun::finish() {
  worker_.await_finish();
  const std::vector<int> gone = replicas_.agree_on(worker_.departed().lost);
  int first = 0;
  while (std::binary_search(gone.begin(), gone.end(), first)) ++first;
  return first == replicas_.index();
}

void SplitRun::part() { replicas_.inside().barrier(Deadline(start_limit), "the end"); }

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
