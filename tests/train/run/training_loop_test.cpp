#include "train/run/training_loop.hpp"

#include "support/catch.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

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
