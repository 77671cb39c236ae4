#include <fast/train/trainer.hpp>

#include <optional>
#include <utility>

#include "train/control/run_control.hpp"
#include "train/run/resume.hpp"
#include "train/run/run_end.hpp"
#include "train/run/run_files.hpp"
#include "train/run/training_loop.hpp"

namespace fast::train {
namespace {

RunControl::Options control_options(const TrainerOptions& options) {
  RunControl::Options control;
  control.exact = options.worker.staleness == 0;
  control.silent_after = options.worker.suspect_after;
  control.deadline = options.worker.deadline;
  control.stop_requested = options.checkpoints.stop_requested;
  return control;
}

/// Makes the objects of a run, each from those before it, and runs them.
Summary run(RunPlan& plan, TrainingBatches& batches, Backend& backend) {
  RunFiles files = open_files(plan);
  RunControl control(plan.group, control_options(plan.options));
  Replica replica(plan, backend,
                  [&](int neighbor, std::int64_t round) { batches.note_missed(neighbor, round); });
  Evaluator evaluator(replica, plan.data.normalization);
  BestModel best(plan, replica, evaluator);
  RunPosition position(batches.rounds());
  RunState state(replica, best, position);
  Resume(plan, replica, state).run();
  look_over(plan, replica.worker().algorithm());
  RunCheckpoint checkpoint(plan, control, state, std::move(files.checkpoints));
  RunLog log(plan, replica, evaluator, std::move(files.metrics));
  const LoopFigures figures = TrainingLoop(plan, batches, replica, best, checkpoint, log).run();
  return RunEnd(plan, replica, evaluator, best, checkpoint, figures).summary();
}

}  // namespace

Summary train(const Group& group, const TopologyRule& rule, Backend& backend,
              const data::Splits& data, const TrainerOptions& options) {
  std::optional<RunPlan> plan;
  std::optional<TrainingBatches> batches;
  agree(group, Deadline(options.worker.deadline), "Trainer: starting up", [&] {
    plan.emplace(plan_run(group, rule, backend, data, options));
    batches.emplace(*plan);
    const RunPlaces places = places_of(options);
    if (plan->is_first_of_host()) require_free(places);
  });
  return run(*plan, *batches, backend);
}

}  // namespace fast::train
