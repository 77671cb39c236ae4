// A run's objects, made in the order of train(), for tests of one of them.
#pragma once

#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include <utility>

#include "exchange/open_coordinator.hpp"
#include "train/run/checkpoint_state.hpp"
#include "train/run/final_model.hpp"
#include "train/run/output_files.hpp"
#include "train/run/training_loop.hpp"
#include "train/training.hpp"

namespace fast::testing {

/// Collective. On a ring.
struct RunParts {
  RunParts(const Group& group, Backend& backend, const train::TrainerOptions& options)
      : plan(train::plan_run(group, stencil::ring(), backend, made_up_data(), options)),
        batches(plan),
        files(train::prepare_files(plan)),
        ranks(open()),
        agreement(plan.coordinator, ranks,
                  {.exact = options.worker.staleness == 0,
                   .deadline = Seconds(30),
                   .stop_requested = options.checkpoints.stop_requested}),
        replica(plan, backend,
                [this](int neighbor, std::int64_t round) {
                  batches.parts().note_missed(neighbor, round);
                }),
        evaluator(replica, plan.data.normalization, plan.options.batch_size),
        best(plan, replica, evaluator),
        position(batches.rounds()),
        balancer(plan, batches, replica),
        state(replica, best, position, balancer) {
    balancer.start();
    train::complete_overview(plan, train::worker_options(plan.options).algorithm.traits());
  }

  std::shared_ptr<const membership::RankMap> open() {
    train::open_files(plan, files);
    train::open_coordinator(plan);
    return exchange::rank_map_of(plan.group, plan.coordinator);
  }

  train::RunPlan plan;
  train::TrainingBatches batches;
  train::RunFiles files;
  std::shared_ptr<const membership::RankMap> ranks;
  membership::RunAgreement agreement;
  train::Replica replica;
  train::Evaluator evaluator;
  train::BestModel best;
  train::TrainingCursor position;
  train::Balancer balancer;
  train::RunState state;
};

/// What a run of one worker does with its objects.
template <class Use>
void with_one_worker(const train::TrainerOptions& options, const Use& use) {
  local::run(1, [&](const Group& group) {
    const auto backend = small_backend();
    RunParts parts(group, *backend, options);
    use(parts);
  });
}

/// The loop and the end of a run, as in train().
inline train::Summary run_to_the_end(RunParts& parts, train::LoopFigures& figures) {
  train::RunCheckpoint checkpoint(parts.plan, parts.agreement, parts.state,
                                  std::move(parts.files.checkpoints));
  train::RunLog log(parts.plan, parts.replica, parts.evaluator, parts.position, parts.files.metrics,
                    parts.files.log);
  figures = train::TrainingLoop(parts.plan, parts.batches, parts.replica, parts.best,
                                parts.balancer, checkpoint, log, {})
                .run();
  return train::RunEnd(parts.plan, parts.replica, parts.evaluator, parts.best, checkpoint, figures)
      .summary();
}

inline std::vector<double> values_of(const AlignedBuffer& model) {
  const auto values = model.as<double>();
  return {values.begin(), values.end()};
}

/// A packed model of that size, all of whose values are `value`.
inline AlignedBuffer model_of(std::size_t size_bytes, double value) {
  AlignedBuffer model(size_bytes);
  for (double& each : model.as<double>()) each = value;
  return model;
}

}  // namespace fast::testing
