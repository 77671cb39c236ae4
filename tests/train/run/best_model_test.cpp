#include "train/run/evaluation.hpp"

#include <limits>

#include "support/catch.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

train::TrainerOptions validated(int patience) {
  train::TrainerOptions options = trainer_options();
  options.validation = 0.25;
  options.patience = patience;
  return options;
}

/// The replica becomes that model and publishes it.
void become(RunParts& parts, const AlignedBuffer& model) {
  parts.replica.adopt(model);
  parts.replica.worker().republish();
}

AlignedBuffer trained_model(RunParts& parts) {
  for (std::size_t round = 0; round < parts.batches.rounds(); ++round)
    parts.replica.round(parts.batches.batch(0, round), 0.05);
  return parts.replica.own_model();
}

}  // namespace

TEST_CASE("of the mean models after epochs the best is kept, also when later ones are worse") {
  with_one_worker(validated(1), [](RunParts& parts) {
    const AlignedBuffer zeros = model_of(parts.replica.layout().size_bytes(), 0);
    const AlignedBuffer trained = trained_model(parts);
    CHECK(parts.best.is_wanted());
    CHECK(parts.best.state().empty());
    become(parts, zeros);
    parts.best.validate(0);
    CHECK(parts.best.exists());
    CHECK_FALSE(parts.best.stops(0));
    become(parts, trained);
    parts.best.validate(1);
    CHECK_FALSE(parts.best.stops(1));
    become(parts, zeros);
    parts.best.validate(2);
    CHECK(parts.best.stops(2));
    CHECK(values_of(parts.best.hand_out()) == values_of(trained));
  });
}

namespace {

/// Says of the model what the test wants.
struct Judged final : Backend {
  float weight = 0;
  std::vector<Evaluation> verdicts;  ///< of the evaluations to come
  std::size_t next = 0;

  std::string name() const override { return "judged"; }
  std::vector<TensorView> parameters() override {
    return {view_of("weight", std::span(&weight, 1))};
  }
  double train(const Batch&, const GradientHook&) override { return 1; }
  Evaluation evaluate(const Batch&) override { return verdicts.at(next++); }
  void set_learning_rate(double) override {}
};

/// The epoch after which the best model was kept.
std::int64_t best_epoch_of(const std::vector<Evaluation>& verdicts) {
  std::int64_t epoch = -1;
  local::run(1, [&](const Group& group) {
    Judged backend;
    backend.verdicts = verdicts;
    train::TrainerOptions options = validated(0);
    RunParts parts(group, backend, options);
    for (std::size_t i = 0; i < verdicts.size(); ++i) parts.best.validate(static_cast<int>(i));
    epoch = *static_cast<const std::int64_t*>(parts.best.state()[2].data);
  });
  return epoch;
}

Measure accuracy_of(double hits) { return {"accuracy", Measure::Form::share, {hits, 240}}; }

}  // namespace

TEST_CASE("the best model has the most correct samples, also where other measures are there") {
  const Measure top5{"top5", Measure::Form::share, {240, 240}};
  CHECK(best_epoch_of({{3, 10, {}}, {2, 30, {}}, {1, 20, {}}}) == 1);
  CHECK(best_epoch_of({{3, 10, {accuracy_of(10), top5}},
                       {2, 30, {accuracy_of(30), top5}},
                       {1, 20, {accuracy_of(20), top5}}}) == 1);
  // Of other measures the loss decides.
  CHECK(best_epoch_of({{3, 0, {top5}}, {1, 0, {top5}}, {2, 0, {top5}}}) == 1);
}

TEST_CASE("a loss that is no number is no better than another") {
  const Measure mae{"mae", Measure::Form::mean, {1, 1}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(best_epoch_of({{nan, 0, {mae}}, {nan, 0, {mae}}}) == 0);
  CHECK(best_epoch_of({{nan, 0, {mae}}, {2, 0, {mae}}, {nan, 0, {mae}}, {3, 0, {mae}}}) == 1);
}

TEST_CASE("the best model of a run is saved and read") {
  with_one_worker(validated(0), [](RunParts& parts) {
    parts.best.validate(3);
    train::BestModel other(parts.plan, parts.replica, parts.evaluator);
    const auto from = parts.best.state();
    train::copy_tensors(from, other.room(), "test");
    CHECK(values_of(other.hand_out()) == values_of(parts.best.hand_out()));
    CHECK(*static_cast<const std::int64_t*>(other.state()[2].data) == 3);
    CHECK_FALSE(other.stops(100));
  });
}

TEST_CASE("epochs without a combination do not count for the patience, after a resume neither") {
  with_one_worker(validated(2), [](RunParts& parts) {
    for (int epoch = 0; epoch < 5; ++epoch) {
      parts.best.skip();
      CHECK_FALSE(parts.best.stops(epoch));
    }
    parts.best.validate(5);
    for (int epoch = 6; epoch < 10; ++epoch) {
      parts.best.skip();
      CHECK_FALSE(parts.best.stops(epoch));
    }
    train::BestModel other(parts.plan, parts.replica, parts.evaluator);
    const auto from = parts.best.state();
    train::copy_tensors(from, other.room(), "test");
    CHECK_FALSE(other.stops(10));
    CHECK(other.stops(11));
  });
}

TEST_CASE("a run without validation samples keeps no best model") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    parts.best.validate(0);
    CHECK_FALSE(parts.best.is_wanted());
    CHECK_FALSE(parts.best.exists());
    CHECK_FALSE(parts.best.stops(100));
  });
}
