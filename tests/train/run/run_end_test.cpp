#include "train/run/final_model.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

std::vector<double> weights_of(Backend& backend) {
  const ParameterLayout layout(backend.parameters());
  const AlignedBuffer packed(layout.size_bytes());
  layout.gather(packed.data());
  return values_of(packed);
}

/// The model in a worker's file.
std::vector<double> saved_weights(const std::filesystem::path& directory, int worker) {
  const auto model =
      train::average_shards(train::find_checkpoint(directory), {worker}, train::model_prefix);
  const auto backend = small_backend();
  train::copy_tensors(model.views, backend->parameters(), "test");
  return weights_of(*backend);
}

}  // namespace

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

TEST_CASE("a run with validation that ends before an epoch is over ends with the mean model") {
  train::TrainerOptions options = trainer_options();
  options.validation = 0.25;
  for (const int workers : {1, 2}) {
    const auto number = static_cast<std::size_t>(workers);
    std::vector<std::vector<double>> begun(number), ended(number);
    local::run(workers, [&](const Group& group) {
      const auto worker = static_cast<std::size_t>(group.rank());
      const auto backend = small_backend();
      RunParts parts(group, *backend, options);
      begun[worker] = values_of(parts.replica.own_model());  // all workers begin alike
      train::RunCheckpoint checkpoint(parts.plan, parts.agreement, parts.state, nullptr);
      checkpoint.end(false);
      train::RunEnd(parts.plan, parts.replica, parts.evaluator, parts.best, checkpoint, {})
          .summary();
      ended[worker] = values_of(parts.replica.own_model());
    });
    CHECK(ended == begun);
  }
}

TEST_CASE("the mean model is saved after the last checkpoint, which takes long to write") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.epochs = 1;
  options.out = directory.path();
  options.checkpoints.every_rounds = train_samples / options.batch_size;
  const std::filesystem::path checkpoints = directory / "checkpoints";
  with_one_worker(options, [&](RunParts& parts) {
    train::CheckpointWriter::Options slow;
    slow.directory = checkpoints;
    slow.may_write = [] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return true;
    };
    parts.files.checkpoints = std::make_unique<train::CheckpointWriter>(std::move(slow));
    train::LoopFigures figures;
    run_to_the_end(parts, figures);
  });
  const auto manifest = train::find_checkpoint(checkpoints).directory / "manifest.json";
  CHECK(std::filesystem::last_write_time(manifest) <=
        std::filesystem::last_write_time(directory / "mean-model.safetensors"));
}

TEST_CASE("the end of a stale run does not wait for files of workers that ended long before") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.epochs = 2;  // of 30 rounds
  options.worker.staleness = unbounded_staleness;
  options.worker.suspect_after = Seconds(30);  // files are waited for twice as long
  options.pace = {0.001, {{1, 30.0}}};
  options.checkpoints.directory = directory.path();
  options.checkpoints.every_rounds = 20;
  const Deadline limit(Seconds(40));
  local::run(2, [&](const Group& group) {
    const auto backend = small_backend();
    RunParts parts(group, *backend, options);
    train::LoopFigures figures;
    run_to_the_end(parts, figures);
  });
  CHECK_FALSE(limit.expired());
  const train::Manifest manifest = train::find_checkpoint(directory.path());
  REQUIRE(manifest.shards.size() == 2);
  CHECK(train::read_shard(manifest, 0).metadata().at("fast.epoch") == "2");
  CHECK(std::stoi(train::read_shard(manifest, 1).metadata().at("fast.round")) >= 20);
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

TEST_CASE("where others were stopped, a worker that had ended saves its weights, not the average") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.ema_decay = 0.9;
  options.checkpoints.directory = directory.path();
  options.checkpoints.stop_requested = [] { return true; };
  std::vector<std::vector<double>> trained(2);
  local::run(2, [&](const Group& group) {
    const auto backend = small_backend();
    RunParts parts(group, *backend, options);
    for (std::size_t round = 0; round < 3; ++round) {
      parts.replica.round(parts.batches.batch(0, round), 0.05);
      parts.position.advance(1);
    }
    trained[static_cast<std::size_t>(group.rank())] = weights_of(*backend);
    train::RunCheckpoint checkpoint(parts.plan, parts.agreement, parts.state,
                                    std::move(parts.files.checkpoints));
    for (const Deadline limit(Seconds(30));
         !checkpoint.agreement().stop_is_settled() && !limit.expired();) {
      checkpoint.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (group.rank() == 1) checkpoint.may_go_on(0.01);  // stops; worker 0 has made all its rounds
    checkpoint.end(false);
    train::RunEnd(parts.plan, parts.replica, parts.evaluator, parts.best, checkpoint, {}).summary();
  });
  CHECK(saved_weights(directory.path(), 0) == trained[0]);
  CHECK(saved_weights(directory.path(), 1) == trained[1]);
}
