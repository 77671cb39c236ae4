#include "train/run/training_loop.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// Losses 1, 2, 3, ...; some steps have none.
struct CountedLosses final : Backend {
  double weight = 0;
  int steps = 0;
  std::set<int> without{};

  std::string name() const override { return "counted losses"; }
  std::vector<TensorView> parameters() override {
    return {view_of("weight", std::span(&weight, 1))};
  }
  double train(const Batch&, const GradientHook&) override {
    ++steps;
    return without.contains(steps) ? std::numeric_limits<double>::quiet_NaN() : steps;
  }
  Evaluation evaluate(const Batch&) override { return {1, 0, {}}; }
  void set_learning_rate(double) override {}
};

}  // namespace

TEST_CASE("steps that were healed are no part of the epoch's loss") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();  // 60 steps an epoch
  options.out = directory.path();
  options.epochs = 2;
  options.worker.not_finite = NotFinite::heal;
  std::string warnings;
  options.worker.log = [&](LogLevel, std::string_view text) { warnings += text; };
  int told = 0;
  options.worker.on_healed = [&] { ++told; };
  CountedLosses backend;
  backend.without = {1, 30};
  for (int step = 61; step <= 120; ++step) backend.without.insert(step);
  local::run(1, [&](const Group& group) {
    CHECK(train_small(group, stencil::ring(), options, backend).summary.healed == 62);
  });
  CHECK(told == 62);
  std::ifstream file(directory / "metrics/0.jsonl");
  std::vector<nlohmann::json> losses;
  for (std::string line; std::getline(file, line);) {
    const auto found = nlohmann::json::parse(line);
    if (found.at("kind") == "epoch") losses.push_back(found.at("loss"));
  }
  REQUIRE(losses.size() == 2);
  CHECK(losses[0].get<double>() == Approx((1830 - 1 - 30) / 58.0));  // 1 + ... + 60
  CHECK(losses[1].is_null());
  CHECK_THAT(warnings, ContainsSubstring("no step of epoch 2 had a finite loss"));
}

TEST_CASE("the loop makes every round of every epoch once") {
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

TEST_CASE(
    "what a worker before has left out is made up for, also if that takes more than all rounds") {
  train::TrainerOptions options = trainer_options();
  with_one_worker(options, [&](RunParts& parts) {
    const auto rounds = 3 * static_cast<std::int64_t>(parts.batches.rounds());
    parts.batches.note_left_out(rounds + 20, 4, 0);
    train::LoopFigures figures;
    const train::Summary summary = run_to_the_end(parts, figures);
    CHECK(summary.rounds == static_cast<std::uint64_t>(rounds));
    CHECK(figures.samples == 16.0 * static_cast<double>(rounds + rounds + 20));
    CHECK(parts.batches.next_missed() == nullptr);
  });
}

TEST_CASE("stale workers save while one makes up for batches after its last round") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.epochs = 2;
  options.worker.staleness = unbounded_staleness;
  options.worker.suspect_after = Seconds(30);  // files are waited for twice as long
  options.pace = {0.04, {{0, 2.0}}};           // worker 0 makes up until the other has ended
  options.checkpoints.directory = directory.path();
  options.checkpoints.every_rounds = 10;
  options.checkpoints.keep = 99;
  local::run(2, [&](const Group& group) {
    const auto backend = small_backend();
    RunParts parts(group, *backend, options);
    if (group.rank() == 0) {
      const auto rounds = 2 * static_cast<std::int64_t>(parts.batches.rounds());
      parts.batches.note_left_out(rounds, 2, 0);
      parts.position.advance(rounds - 1);
    }
    train::LoopFigures figures;
    run_to_the_end(parts, figures);
  });
  std::size_t saved = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (!entry.is_directory()) continue;
    ++saved;
    CHECK(train::read_manifest(entry.path()).shards.size() == 2);
  }
  CHECK(saved >= 3);  // without worker 0's answers, one
}
