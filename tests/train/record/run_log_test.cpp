#include "train/record/run_log.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;
using train::Score;

namespace {

train::RunLog log_of(RunParts& parts) {
  return {parts.plan,     parts.replica,       parts.evaluator,
          parts.position, parts.files.metrics, parts.files.log};
}

}  // namespace

TEST_CASE("lines of metrics tell how the mean model does on the worker's part of the test") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.out = directory.path();
  Score own;
  with_one_worker(options, [&](RunParts& parts) {
    own = train::score_of(parts.evaluator.own(parts.plan.data.test), test_samples);
    auto log = log_of(parts);
    log.begin_epoch();
    log.evaluate({1, 0.5, 0.125, 1.25});
    log.end_rounds();
    log.end_epoch({2, 0.25, 0.0625, 2.5, 0.75, 3.5}, {});
  });
  std::ifstream in(directory / "metrics/0.jsonl");
  std::string text;
  std::getline(in, text);
  const auto first = nlohmann::json::parse(text);
  CHECK(first.at("kind") == "evaluation");
  CHECK(first.at("epoch") == 2);
  CHECK(first.at("loss") == 0.5);
  CHECK(first.at("learning_rate") == 0.125);
  CHECK(first.at("seconds_training") == 1.25);
  CHECK(first.at("test_samples") == test_samples);
  CHECK(first.at("test_accuracy") == own.accuracy);
  CHECK(first.at("test_loss").get<double>() == Approx(own.loss));
  CHECK(first.at("consensus_distance") == 0);
  CHECK_FALSE(first.contains("accuracy"));
  CHECK_FALSE(first.contains("gradient_norm"));
  std::getline(in, text);
  const auto second = nlohmann::json::parse(text);
  CHECK(second.at("kind") == "epoch");
  CHECK(second.at("epoch") == 3);
  CHECK(second.at("validation_accuracy") == own.accuracy);
  CHECK(second.at("validated") == "mean model");
  CHECK(second.at("accuracy") == 0.75);
  CHECK(second.at("gradient_norm") == 3.5);
}

namespace {

struct Told final : Observer {
  void on_scalar(const ScalarEvent& event) noexcept override {
    scalars[std::string(event.name)] = event.value;
  }
  void on_milestone(const MilestoneEvent& event) noexcept override {
    milestones.push_back(event.kind);
    epoch = event.epoch;
    lasted = event.ended - event.began;
  }
  void on_values(const ValuesEvent& event) noexcept override {
    values[std::string(event.name)] += event.values.size();
    first_values[std::string(event.name)] = event.values.front();
  }
  std::map<std::string, double> scalars;
  std::map<std::string, std::size_t> values;
  std::map<std::string, float> first_values;
  std::vector<MilestoneEvent::Kind> milestones;
  int epoch = -1;
  Seconds lasted{-1};
};

}  // namespace

TEST_CASE("an observer is told of figures, of the end of an epoch and of all weights") {
  const auto told = std::make_shared<Told>();
  train::TrainerOptions options = trainer_options();
  options.worker.observer = told;
  std::size_t parameters = 0;
  with_one_worker(options, [&](RunParts& parts) {
    auto log = log_of(parts);
    log.begin_epoch();
    log.show({0, 2, 1, 4, 0.75, 100, 1}, 0.125, 16);
    log.show({0, 2, 2, 4, 0.5, 100, 1}, 0.0625, 32);  // too soon after the other
    log.end_rounds();
    log.end_epoch({0, 0.5, 0.0625, 1.25, 0.25, 1.5}, Score{.accuracy = 0.625, .samples = 8});
    parameters = parts.replica.layout().parameter_count();
  });
  CHECK(told->scalars.at("train/loss") == 0.75);
  CHECK(told->scalars.at("train/learning_rate") == 0.125);
  CHECK(told->scalars.at("train/samples_per_second") == 16);  // the worker's own
  CHECK(told->scalars.at("train/epoch_loss") == 0.5);
  CHECK(told->scalars.at("train/accuracy") == 0.25);
  CHECK(told->scalars.at("train/gradient_norm") == 1.5);
  CHECK(told->scalars.at("validation/mean_model_accuracy") == 0.625);
  const double accuracy = told->scalars.at("test/mean_model_accuracy");
  CHECK(accuracy * test_samples == Approx(std::round(accuracy * test_samples)));
  CHECK(told->milestones == std::vector{MilestoneEvent::Kind::epoch_ended});
  CHECK(told->epoch == 0);
  CHECK(told->lasted.count() > 0);
  std::size_t own = 0, mean = 0;
  for (const auto& [name, count] : told->values) {
    if (name.starts_with("weights/")) own += count;
    if (name.starts_with("mean_model_weights/")) mean += count;
  }
  CHECK(own == parameters);
  CHECK(mean == parameters);
}

TEST_CASE("the values of the mean model are what the workers have published") {
  const auto told = std::make_shared<Told>();
  train::TrainerOptions options = trainer_options();
  options.worker.observer = told;
  std::string name;
  double published = 0;
  with_one_worker(options, [&](RunParts& parts) {
    const TensorView& view = parts.replica.layout().views().back();
    auto& weight = *static_cast<double*>(view.data);
    name = view.name;
    published = weight;
    weight += 2;
    auto log = log_of(parts);
    log.begin_epoch();
    log.end_rounds();
    log.end_epoch({}, {});
  });
  CHECK(told->first_values.at("mean_model_weights/" + name) == static_cast<float>(published));
  CHECK(told->first_values.at("weights/" + name) == static_cast<float>(published + 2));
}

TEST_CASE("a worker that leaves says in which round") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.out = directory.path();
  with_one_worker(options, [&](RunParts& parts) {
    auto log = log_of(parts);
    parts.position.advance(10);
    parts.replica.worker().leave();
    log.leave(1.25);
  });
  std::ifstream in(directory / "metrics/0.jsonl");
  std::string text;
  std::getline(in, text);
  const auto event = nlohmann::json::parse(text);
  CHECK(event.at("event") == "left");
  CHECK(event.at("step") == 10);
  std::getline(in, text);
  const auto end = nlohmann::json::parse(text);
  CHECK(end.at("state") == "left");
  CHECK(end.at("step") == 10);
}
