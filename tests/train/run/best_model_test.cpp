#include "train/run/best_model.hpp"

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

TEST_CASE("a run without validation samples keeps no best model") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    parts.best.validate(0);
    CHECK_FALSE(parts.best.is_wanted());
    CHECK_FALSE(parts.best.exists());
    CHECK_FALSE(parts.best.stops(100));
  });
}
