#include "train/run/replica.hpp"

#include <mutex>

#include "support/catch.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("a replica with a moving average ends as that average") {
  train::TrainerOptions options = trainer_options();
  options.ema_decay = 0.9;
  with_one_worker(options, [](RunParts& parts) {
    for (std::size_t round = 0; round < 5; ++round)
      parts.replica.round(parts.batches.batch(0, round), 0.05);
    const auto trained = values_of(parts.replica.own_model());
    const auto average = values_of(parts.replica.ema()->packed());
    CHECK(trained != average);
    parts.replica.finish();
    CHECK(values_of(parts.replica.own_model()) == average);
    CHECK(values_of(parts.replica.mean_model()) == average);
  });
}

TEST_CASE("closing rounds bring replicas to the mean model, which stays as it was") {
  std::mutex mutex;
  local::run(3, [&](const Group& group) {
    const auto backend = small_backend();
    RunParts parts(group, *backend, trainer_options());
    const std::size_t size_bytes = parts.replica.layout().size_bytes();
    parts.replica.adopt(model_of(size_bytes, group.rank()));
    parts.replica.finish();
    const double before = parts.replica.worker().consensus_distance();
    parts.replica.close(4, [] { return false; });  // a ring of three averages all in one round
    const double after = parts.replica.worker().consensus_distance();
    const double mean = parts.replica.mean_model().as<double>()[0];
    const std::lock_guard lock(mutex);
    CHECK(before > 1);
    CHECK(after < 1e-9);
    CHECK(mean == Approx(1));
  });
}

TEST_CASE("replicas of an all-reduce are the mean model, though they publish nothing") {
  train::TrainerOptions options = trainer_options();
  options.all_reduce = true;
  with_one_worker(options, [](RunParts& parts) {
    parts.replica.round(parts.batches.batch(0, 0), 0.05);
    CHECK(parts.replica.step().all_reduces());
    CHECK(values_of(parts.replica.current_model()) == values_of(parts.replica.own_model()));
    CHECK(values_of(parts.replica.current_model()) != values_of(parts.replica.mean_model()));
  });
}
