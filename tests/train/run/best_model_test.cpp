#include "train/run/evaluation.hpp"

#include <fast/exchange/local.hpp>
#include <functional>
#include <limits>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/checkpoint/manifest.hpp"
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

namespace {

struct Noted {
  double loss;
  std::int64_t in_force, wanted;  ///< reductions, the latter afterwards
};

}  // namespace

// Worked out by hand from PyTorch's ReduceLROnPlateau(patience=1, threshold=0.1).
TEST_CASE(
    "a plateau is more epochs in a row than the patience without a loss below the threshold") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  train::LearningRate rate{.schedule = train::LearningRate::Schedule::plateau};
  rate.plateau_patience = 1;
  rate.plateau_threshold = 0.1;
  train::Plateau plateau(rate);
  for (const auto& [loss, in_force, wanted] :
       {Noted{1.0, 0, 0},                       // the least so far
        Noted{0.95, 0, 0},                      // not below 0.9
        Noted{0.89, 0, 0},                      // below: the count begins anew
        Noted{0.85, 0, 0},                      // not below 0.801
        Noted{0.81, 0, 1},                      // the second in a row
        Noted{0.85, 0, 1},                      // before the rate is lower
        Noted{0.85, 0, 1}, Noted{nan, 1, 1},    // the first one at that rate
        Noted{0.80, 1, 1}, Noted{0.725, 1, 1},  // not below 0.72
        Noted{0.73, 1, 2}}) {
    INFO("a loss of " << loss);
    plateau.note(loss, in_force);
    CHECK(plateau.wanted() == wanted);
  }
  train::Plateau warm(rate);
  for (int epoch = 0; epoch < 5; ++epoch) warm.note(1, 0, false);
  CHECK(warm.wanted() == 0);
  rate.base = 1e-7;  // to 1e-8; what is left to lower then is less than 1e-8
  train::Plateau small(rate);
  for (int epoch = 0; epoch < 20; ++epoch) small.note(1, small.wanted());
  CHECK(small.wanted() == 1);
}

namespace {

using Rates = std::vector<double>;  ///< by round

/// Its validation losses are a table's, by the epochs that it has trained.
struct Scripted final : Backend {
  explicit Scripted(std::size_t rounds) : rounds(rounds) {}
  std::size_t rounds;  ///< of an epoch
  double weight = 0, gradient = 1, steps = 0, rate = 0;
  Rates seen = {};

  static double loss_after(std::size_t epochs) {
    return std::vector{1.0, 0.5, 0.6, 0.7, 0.4, 0.45, 0.3, 0.2}.at(epochs - 1);
  }
  std::string name() const override { return "scripted"; }
  std::vector<TensorView> parameters() override {
    return {view_of("weight", std::span(&weight, 1))};
  }
  std::vector<TensorView> optimizer_state() override {
    return {view_of("steps", std::span(&steps, 1))};
  }
  double train(const Batch&, const GradientHook& hook) override {
    gradient = 1;
    if (hook) hook({view_of("gradient", std::span(&gradient, 1))});
    weight -= rate * gradient;
    ++steps;
    seen.push_back(rate);
    return 1;
  }
  Evaluation evaluate(const Batch& batch) override {
    const auto epochs = static_cast<std::size_t>(steps) / rounds;
    const auto count = static_cast<double>(batch.count());
    const double loss = epochs == 0 ? 0 : loss_after(epochs);
    return {loss * count, 0, {{"mean_loss", Measure::Form::mean, {loss * count, count}}}};
  }
  void set_learning_rate(double learning_rate) override { rate = learning_rate; }
};

constexpr int epochs_of_table = 8;

std::size_t rounds_of(int workers) {
  return train_samples * 3 / 4 / 16 / static_cast<std::size_t>(workers);
}

/// What each worker's steps have been made with.
std::vector<Rates> rates_of(int workers, train::TrainerOptions options, bool in_step = true) {
  options.epochs = epochs_of_table;
  options.validation = 0.25;
  options.learning_rate = {.base = 0.5, .schedule = train::LearningRate::Schedule::plateau};
  options.learning_rate.plateau_factor = 0.5;
  options.learning_rate.plateau_patience = 0;
  std::vector<Rates> all(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    Scripted backend(rounds_of(workers));
    const train::Summary summary =
        train::train(group, stencil::ring(), backend, made_up_data(), options);
    if (in_step) CHECK(summary.lr_reductions == (workers == 1 ? 3 : 2));
    all[static_cast<std::size_t>(group.rank())] = backend.seen;
  });
  return all;
}

/// By hand: a loss that is not lower halves the rate from the next epoch on. In a run of several
/// workers that is one epoch later, and the epoch between does not count.
Rates expected(int workers) {
  const auto by_epoch = workers == 1 ? std::vector{.5, .5, .5, .25, .125, .125, .0625, .0625}
                                     : std::vector{.5, .5, .5, .5, .25, .25, .25, .125};
  Rates rates;
  for (const double rate : by_epoch) rates.insert(rates.end(), rounds_of(workers), rate);
  return rates;
}

}  // namespace

TEST_CASE("all workers lower the learning rate in the same round, however they exchange") {
  CHECK(rates_of(1, trainer_options()).front() == expected(1));
  for (const char* algorithm : {"awc", "all-reduce", "local"}) {
    INFO(algorithm);
    train::TrainerOptions options = trainer_options();
    options.all_reduce = algorithm == std::string("all-reduce");
    if (!options.all_reduce) options.worker.algorithm = algorithm::by_name(algorithm);
    for (const Rates& rates : rates_of(4, options)) CHECK(rates == expected(4));
  }
  // Alone, others may be some epochs further than worker 0.
  train::TrainerOptions options = trainer_options();
  options.worker.algorithm = algorithm::by_name("none");
  const auto alone = rates_of(4, options, false);
  for (const Rates& rates : alone) CHECK(rates == alone.front());
}

TEST_CASE("a run that resumes lowers the learning rate in the same rounds, from any checkpoint") {
  for (const bool all_reduce : {false, true}) {
    for (const int workers : {1, 4}) {
      const testing::TemporaryDirectory directory;
      const std::size_t rounds = rounds_of(workers), every = workers == 1 ? 15 : 4;
      train::TrainerOptions options = trainer_options();
      options.all_reduce = all_reduce;
      options.checkpoints.directory = directory.path();
      options.checkpoints.every_rounds = static_cast<std::int64_t>(every);
      options.checkpoints.keep = 100;
      rates_of(workers, options);
      for (const std::size_t about : {3 * rounds, 3 * rounds + every, 5 * rounds}) {
        const std::size_t made = about / every * every;
        INFO(workers << " workers, from round " << made);
        train::TrainerOptions resumed = trainer_options();
        resumed.all_reduce = all_reduce;
        resumed.checkpoints.resume =
            directory.path() / train::directory_name(static_cast<std::int64_t>(made));
        Rates rest = expected(workers);
        rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(made));
        for (const Rates& rates : rates_of(workers, resumed)) CHECK(rates == rest);
      }
    }
  }
}

TEST_CASE("stale workers lower the learning rate as they hear of it") {
  train::TrainerOptions options = trainer_options();
  options.worker.staleness = unbounded_staleness;
  options.pace.step_s = 0.002;
  for (const Rates& rates : rates_of(4, options, false)) {
    CHECK(std::ranges::is_sorted(rates, std::greater<>()));
    CHECK(rates.back() < 0.5);
  }
}
