// What a training run writes down of each epoch.
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/stencil.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::train_four;
using testing::trainer_options;

namespace {

std::vector<nlohmann::json> metrics_of(const std::filesystem::path& file,
                                       std::string_view kind = {}) {
  std::ifstream in(file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    auto metrics = nlohmann::json::parse(line);
    if (kind.empty() || metrics.at("kind") == kind) lines.push_back(std::move(metrics));
  }
  return lines;
}

/// y = (x0 - 2 x1 + 0.5, x1), of samples of two values.
data::Splits line_data() {
  Rng rng(3);
  std::vector<float> values, targets;
  for (int i = 0; i < 700; ++i) {
    const auto a = static_cast<float>(rng.normal()), b = static_cast<float>(rng.normal());
    values.insert(values.end(), {a, b});
    targets.insert(targets.end(), {a - 2 * b + 0.5F, b});
  }
  const data::Dataset all("line", {2}, std::move(values), data::Targets{std::move(targets), {2}});
  return {all.slice(0, 600), all.slice(600, 100), {}};
}

}  // namespace

TEST_CASE("workers learn a regression, and all that is reported has its measures") {
  const testing::TemporaryDirectory directory;
  const data::Splits data = line_data();
  train::TrainerOptions options = trainer_options();
  options.epochs = 8;
  options.out = directory / "run";
  options.validation = 0.1;
  std::vector<train::Summary> all(3);
  local::run(3, [&](const Group& group) {
    const auto backend =
        nn::make_backend<double>({"line", {2}, {nn::Dense{2}}, {nn::Loss::mse}}, 5);
    all[static_cast<std::size_t>(group.rank())] =
        train::train(group, stencil::ring(), *backend, data, options);
  });
  const train::Summary& summary = all[0];
  REQUIRE(summary.measures.size() == 2);
  CHECK(summary.measures[0].name == "mae");
  CHECK(summary.measures[1].name == "rmse");
  CHECK(summary.measures[0].mean_model < 0.05);
  CHECK(summary.measures[1].mean_model >= summary.measures[0].mean_model);
  CHECK(summary.measures[0].worst_worker < 0.05);
  CHECK(summary.test_loss_mean_model == Approx(std::pow(summary.measures[1].mean_model, 2)));
  for (const train::Summary& each : all) CHECK(each.to_json() == summary.to_json());
  for (int rank = 0; rank < 3; ++rank) {
    const auto lines = metrics_of(*options.out / fmt::format("metrics/{}.jsonl", rank), "epoch");
    REQUIRE(lines.size() == 8);
    CHECK(lines.back().at("test_mae") < 0.05);
    CHECK(lines.back().contains("test_rmse"));
    CHECK(lines.back().contains("validation_mae") == (rank == 0));
    CHECK(lines.back().at("gradient_norm") > 0);
    for (const char* name : {"accuracy", "test_accuracy", "validation_accuracy"})
      CHECK_FALSE(lines.back().contains(name));
    const auto end = metrics_of(*options.out / fmt::format("metrics/{}.jsonl", rank), "end");
    CHECK(end.at(0).at("test_mae") == summary.measures[0].mean_model);
    CHECK_FALSE(end.at(0).contains("test_accuracy"));
  }
}

TEST_CASE("every worker's metrics have a start, a line an epoch and an end") {
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory / "new/run";
  const train::Summary summary = train_four(options)[0].summary;
  for (int rank = 0; rank < 4; ++rank) {
    const auto lines = metrics_of(*options.out / fmt::format("metrics/{}.jsonl", rank));
    REQUIRE(lines.size() == 5);
    CHECK(lines.front().at("kind") == "start");
    CHECK(lines.front().at("workers") == 4);
    CHECK(lines.front().at("samples") == testing::train_samples);
    for (int epoch = 1; epoch <= 3; ++epoch) {
      const auto& line = lines[static_cast<std::size_t>(epoch)];
      CHECK(line.at("kind") == "epoch");
      CHECK(line.at("rank") == rank);
      CHECK(line.at("epoch") == epoch);
      CHECK(line.at("step") == 15 * epoch);
      CHECK(line.at("samples") == 15 * 16);
      CHECK(line.at("test_samples") == testing::test_samples / 4);
      CHECK(line.at("validation_accuracy") == line.at("test_accuracy"));
      CHECK(line.at("loss") > 0);
      CHECK(line.at("age_max") == 0);
      CHECK(line.at("seconds") >= line.at("seconds_training"));
    }
    CHECK(lines.back().at("kind") == "end");
    CHECK(lines.back().at("test_accuracy") == summary.test_accuracy_mean_model);
    CHECK(lines.back().at("lost") == nlohmann::json::array());
  }
  const auto merged = metrics_of(*options.out / "metrics.jsonl");
  CHECK(merged.size() == 4 * 5);
  CHECK(std::is_sorted(merged.begin(), merged.end(),
                       [](const auto& a, const auto& b) { return a["time"] < b["time"]; }));
}

TEST_CASE("phases and waits of an epoch fit in its time, whatever is exchanged") {
  const std::string exchanged = GENERATE("weights", "stale weights", "gradients", "nothing");
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory.path();
  options.all_reduce = exchanged == "gradients";
  if (exchanged == "nothing") options.worker.algorithm = algorithm::none();
  if (exchanged == "stale weights") options.worker.staleness = 2;
  options.pace = {.step_s = 0.002, .slow = {{2, 4.0}}};
  train_four(options);
  INFO(exchanged);
  for (int rank = 0; rank < 4; ++rank) {
    for (const auto& line :
         metrics_of(directory / fmt::format("metrics/{}.jsonl", rank), "epoch")) {
      double all = 0;
      for (const double phase_s : line.at("phases")) {
        CHECK(phase_s >= 0);
        all += phase_s;
      }
      const double elapsed_s =
          line.at("samples").get<double>() / line.at("samples_per_second").get<double>();
      CHECK(all == Approx(elapsed_s).epsilon(0.01));
      const double least_step_s = 15 * 0.002 * (rank == 2 ? 4 : 1);
      CHECK(line.at("phases").at("step") >= 0.99 * least_step_s);
      double waits = 0;
      for (const double wait_s : line.at("waits")) waits += wait_s;
      if (!options.all_reduce) CHECK(waits <= line.at("phases").at("wait").get<double>() + 1e-3);
    }
  }
  // Rounds at staleness 0 and of an all-reduce take as long as those of the slow worker.
  if (exchanged != "weights" && exchanged != "gradients") return;
  const auto waiting = metrics_of(directory / "metrics/0.jsonl", "epoch").back();
  CHECK(waiting.at("phases").at("wait") > 15 * 0.002);
}

TEST_CASE("metrics follow the mean model whatever is exchanged") {
  for (const bool all_reduce : {true, false}) {
    const testing::TemporaryDirectory directory;
    auto options = trainer_options();
    options.out = directory / "run";
    options.all_reduce = all_reduce;
    if (!all_reduce) options.worker.algorithm = algorithm::none();
    train_four(options);
    const auto epochs = metrics_of(*options.out / "metrics/2.jsonl", "epoch");
    INFO((all_reduce ? "gradients" : "nothing"));
    CHECK(epochs.back().at("test_loss") < epochs.front().at("test_loss"));
    CHECK(epochs.back().at("test_accuracy") > 0.9);
    CHECK((epochs.back().at("consensus_distance") == 0) == all_reduce);
    CHECK(metrics_of(*options.out / "metrics/2.jsonl", "start")[0].at("spectral_gap").is_null());
  }
}

TEST_CASE("with held-out samples worker 0 alone has a validation") {
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory.path();
  options.validation = 0.25;
  options.evaluate_every = 5;
  train_four(options);
  const auto start = metrics_of(directory / "metrics/0.jsonl", "start").at(0);
  CHECK(start.at("samples") == testing::train_samples * 3 / 4);
  CHECK(start.at("validation") ==
        fmt::format("{} samples of the training part, drawn by the seed, the same share of each "
                    "class",
                    testing::train_samples / 4));
  for (int rank = 0; rank < 4; ++rank) {
    const auto file = directory / fmt::format("metrics/{}.jsonl", rank);
    for (const auto& line : metrics_of(file, "epoch")) {
      CHECK(line.contains("validation_accuracy") == (rank == 0));
      if (rank == 0) CHECK(line.at("validation_samples") == testing::train_samples / 4);
      CHECK(line.at("test_samples") == testing::test_samples / 4);
    }
    // Epochs have 11 rounds: tests after the fifth and the tenth.
    CHECK(metrics_of(file, "evaluation").size() == 3 * 2);
  }
}

TEST_CASE("the metrics of a worker that fails say why") {
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory.path();
  options.worker.on_round = [](std::int64_t round) {
    if (round == 5) throw std::runtime_error("the fifth");
  };
  CHECK_THROWS(train_four(options));
  const auto events = metrics_of(directory / "metrics/1.jsonl", "event");
  REQUIRE(events.size() == 1);
  CHECK(events[0].at("event") == "failed");
  CHECK(events[0].at("worker") == 1);
  CHECK(!events[0].at("text").get<std::string>().empty());
}
