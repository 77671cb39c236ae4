#include "train/run/run_log.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

train::RunLog log_of(RunParts& parts) {
  return {parts.plan, parts.replica, parts.evaluator, std::move(parts.files.metrics)};
}

}  // namespace

TEST_CASE("a line of metrics tells how the mean model does on the worker's part of the test") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.out = directory.path();
  with_one_worker(options, [](RunParts& parts) {
    auto log = log_of(parts);
    log.add_line(2, 0.5, 1.25);
    log.add_line(3, 0.25, 2.5);
  });
  std::ifstream in(directory / "metrics-0.jsonl");
  std::string line;
  std::getline(in, line);
  const auto first = nlohmann::json::parse(line);
  CHECK(first.at("epoch") == 2);
  CHECK(first.at("train_loss") == 0.5);
  CHECK(first.at("seconds") == 1.25);
  CHECK(first.at("mean_model_test_samples") == test_samples);
  CHECK(first.at("consensus_distance") == 0);
  std::getline(in, line);
  CHECK(nlohmann::json::parse(line).at("epoch") == 3);
}

TEST_CASE("a full disk costs lines of metrics and gives one warning") {
  if (!std::filesystem::exists("/dev/full")) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory / "metrics-0.jsonl");
  std::vector<std::string> messages;
  train::TrainerOptions options = trainer_options();
  options.worker.log = [&](LogLevel, std::string_view text) { messages.emplace_back(text); };
  with_one_worker(options, [&](RunParts& parts) {
    train::RunLog log(parts.plan, parts.replica, parts.evaluator,
                      train::MetricsWriter(directory.path(), 0));
    for (int epoch = 1; epoch <= 3; ++epoch) log.add_line(epoch, 0.5, 1);
  });
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], ContainsSubstring("worker 0") && ContainsSubstring("free space"));
}
