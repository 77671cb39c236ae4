// The loop of a run and its end, on one worker.
#include "train/run/training_loop.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// The loop and what follows it, as in train().
train::Summary run_to_the_end(RunParts& parts, train::LoopFigures& figures) {
  train::RunCheckpoint checkpoint(parts.plan, parts.control, parts.state,
                                  std::move(parts.files.checkpoints));
  train::RunLog log(parts.plan, parts.replica, parts.evaluator, std::move(parts.files.metrics));
  figures =
      train::TrainingLoop(parts.plan, parts.batches, parts.replica, parts.best, checkpoint, log)
          .run();
  return train::RunEnd(parts.plan, parts.replica, parts.evaluator, parts.best, checkpoint, figures)
      .summary();
}

}  // namespace

TEST_CASE("the loop makes every round of every epoch once, with the schedule's learning rates") {
  train::TrainerOptions options = trainer_options();
  std::int64_t rounds = 0;
  options.worker.on_round = [&](std::int64_t) { ++rounds; };
  with_one_worker(options, [&](RunParts& parts) {
    train::LoopFigures figures;
    const train::Summary summary = run_to_the_end(parts, figures);
    CHECK(rounds == 3 * static_cast<std::int64_t>(parts.batches.rounds()));
    CHECK(parts.position.rounds() == rounds);
    CHECK(parts.position.epoch() == 3);
    CHECK(figures.samples == 16.0 * static_cast<double>(rounds));
    CHECK(figures.seconds > 0);
    CHECK(summary.rounds == static_cast<std::uint64_t>(rounds));
    CHECK(summary.epochs == 3);
  });
}

TEST_CASE("the end of a run of one worker is its replica, tested") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.out = directory.path();
  with_one_worker(options, [](RunParts& parts) {
    train::LoopFigures figures;
    const train::Summary summary = run_to_the_end(parts, figures);
    CHECK(summary.test_accuracy_mean_model == summary.test_accuracy_worst_worker);
    CHECK(summary.test_accuracy_mean_model > 0.9);
    CHECK(summary.consensus_distance == 0);
    CHECK(summary.unsaved.empty());
    CHECK(summary.lost.empty());
  });
  CHECK(std::filesystem::exists(directory / "mean-model.safetensors"));
}

TEST_CASE("a mean model that cannot be saved is told in the summary") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.epochs = 1;
  options.out = directory.path();
  with_one_worker(options, [&](RunParts& parts) {
    std::filesystem::create_directories(directory / "mean-model.safetensors/in-the-way");
    train::LoopFigures figures;
    CHECK_THAT(run_to_the_end(parts, figures).unsaved, ContainsSubstring("mean-model.safetensors"));
  });
}
