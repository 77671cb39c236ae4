// Runs with batches in proportion to speed, from the Trainer's side.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include <cmath>
#include <set>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/balance/balancer.hpp"
#include "train/run/run_parts.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::Trained;
using testing::trainer_options;
using train::Balance;

namespace {

train::TrainerOptions balanced_options(const char* balance) {
  train::TrainerOptions options = trainer_options();
  options.balance = train::balance_from(balance);
  return options;
}

template <class Change>
std::vector<Trained> train_balanced(int workers, const train::TrainerOptions& options,
                                    const Change& change) {
  std::vector<Trained> all(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    train::TrainerOptions own = options;
    change(own, group.rank());
    all[static_cast<std::size_t>(group.rank())] = testing::train_small(group, stencil::ring(), own);
  });
  return all;
}

std::vector<Trained> train_balanced(int workers, const train::TrainerOptions& options) {
  return train_balanced(workers, options, [](auto&, int) {});
}

double largest_weight_difference(const Trained& a, const Trained& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.mean_model.size(); ++i)
    largest = std::max(largest, std::abs(a.mean_model[i] - b.mean_model[i]));
  return largest;
}

train::RunPlan balanced_plan(const Group& group, const train::TrainerOptions& options) {
  const auto backend = testing::small_backend();
  return train::plan_run(group, stencil::ring(), *backend, testing::made_up_data(), options);
}

}  // namespace

// An epoch of one round takes all samples, however they are divided.
TEST_CASE("averaged gradients of unequal batches are that of one worker with all samples") {
  train::TrainerOptions options = trainer_options();
  options.epochs = 10;
  options.batch_size = testing::train_samples;
  const auto alone = train_balanced(1, options);
  for (const char* balance : {"4,2,1", "1,5,1,2,3"}) {
    CAPTURE(balance);
    options.balance = train::balance_from(balance);
    options.all_reduce = true;
    const auto workers = static_cast<int>(options.balance.speeds.size());
    options.batch_size = testing::train_samples / static_cast<std::size_t>(workers);
    const auto shared = train_balanced(workers, options);
    CHECK(largest_weight_difference(shared.front(), alone.front()) < 1e-10);
  }
}

TEST_CASE("a step is scaled by the worker's share, whatever the optimizer, and with rotation") {
  for (const auto arena : {train::Arena::fixed, train::Arena::rotating}) {
    std::vector<double> moved(2);
    for (const double share : {1.0, 2.5}) {
      train::TrainerOptions options = trainer_options();
      options.arena = arena;
      testing::with_one_worker(options, [&](testing::RunParts& parts) {
        const auto before = testing::values_of(parts.replica.own_model());
        parts.replica.step().set_share(share);
        parts.replica.round(parts.batches.batch(0, 0), 0.01);
        const auto after = testing::values_of(parts.replica.own_model());
        moved[share > 1 ? 1 : 0] = after[3] - before[3];
      });
    }
    CHECK(std::abs(moved[0]) > 0);
    CHECK(moved[1] == Approx(2.5 * moved[0]));
  }
}

TEST_CASE("each sample of an epoch is in one batch, before and after a new division") {
  const auto groups = local::make_groups(3);
  for (const std::optional<std::size_t> window :
       {std::optional<std::size_t>(), std::optional<std::size_t>(100)}) {
    std::vector<std::set<float>> seen(2);
    std::size_t taken = 0;
    for (int rank = 0; rank < 3; ++rank) {
      train::TrainerOptions options = balanced_options("4,2,1");
      options.window = window;
      const train::RunPlan plan = balanced_plan(groups[static_cast<std::size_t>(rank)], options);
      train::TrainingBatches batches(plan);
      CHECK(batches.rounds() == testing::train_samples / 3 / 16);
      CHECK(batches.batch_size() == std::vector<std::size_t>{27, 14, 7}[std::size_t(rank)]);
      for (int epoch = 0; epoch < 2; ++epoch) {
        if (epoch == 1) batches.divide(plan, train::Shares({10, 8, 30}));
        for (std::size_t round = 0; round < batches.rounds(); ++round) {
          const Batch& batch = batches.batch(epoch, round);
          CHECK(batch.count() == batches.batch_size());
          for (std::size_t s = 0; s < batch.count(); ++s) {
            seen[static_cast<std::size_t>(epoch)].insert(batch.inputs[s * 16]);
            ++taken;
          }
        }
      }
      CHECK(batches.batch_size() == std::vector<std::size_t>{10, 8, 30}[std::size_t(rank)]);
    }
    for (const auto& epoch : seen) CHECK(epoch.size() == testing::train_samples);
    CHECK(taken == 2 * testing::train_samples);
  }
}

TEST_CASE("balanced workers learn as even ones do, at any staleness") {
  const auto even = train_balanced(3, trainer_options());
  CHECK(even[0].summary.test_accuracy_mean_model > 0.95);
  for (const char* balance : {"4,2,1", "measured"}) {
    for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{3}, unbounded_staleness}) {
      CAPTURE(balance, staleness);
      train::TrainerOptions options = balanced_options(balance);
      options.worker.staleness = staleness;
      options.ema_decay = staleness == 3 ? 0.9 : 0;
      const auto all = train_balanced(3, options);
      CHECK(all[0].summary.test_accuracy_mean_model > 0.95);
      CHECK(all[0].summary.rounds == even[0].summary.rounds);
      CHECK(all[0].mean_model == all[2].mean_model);
    }
  }
}

TEST_CASE("a balanced run that is stopped and resumed ends with the same bits") {
  const testing::TemporaryDirectory directory;
  const train::TrainerOptions options = balanced_options("1,4,2");
  const auto whole = train_balanced(3, options);
  const auto cut = [&](train::TrainerOptions& own, int) {
    own.checkpoints.directory = directory.path();
    own.checkpoints.every_rounds = 25;
    own.worker.on_round = [](std::int64_t round) {
      if (round == 37) throw std::runtime_error("the power is cut");
    };
  };
  CHECK_THROWS(train_balanced(3, options, cut));
  const auto resumed = train_balanced(3, options, [&](train::TrainerOptions& own, int) {
    own.checkpoints.resume = directory.path();
  });
  for (std::size_t w = 0; w < 3; ++w) CHECK(resumed[w].mean_model == whole[w].mean_model);
}

TEST_CASE("measured shares come from a checkpoint of as many workers and samples") {
  testing::with_one_worker(balanced_options("measured"), [](testing::RunParts& parts) {
    CHECK(parts.state.metadata().at("fast.batches") == "16");
  });
  const auto resumed = [](const char* saved, const char* expected) {
    local::run(3, [&](const Group& group) {
      const auto backend = testing::small_backend();
      testing::RunParts parts(group, *backend, balanced_options("measured"));
      // Files of different epochs, and a worker without one.
      if (group.rank() == 0)
        parts.balancer.take_shares({{"fast.batches", "30,9,9"}, {"fast.epoch", "9"}});
      if (group.rank() == 1)
        parts.balancer.take_shares({{"fast.batches", saved}, {"fast.epoch", "10"}});
      parts.balancer.start();
      CHECK(parts.balancer.shares().text() == expected);
      CHECK(parts.batches.batch_size() == parts.balancer.shares().of(group.rank()).batch_size);
      CHECK(parts.state.metadata().at("fast.batches") == expected);
    });
  };
  resumed("20,18,10", "20,18,10");
  for (const char* other : {"20,28", "20,18,11", "x"}) resumed(other, "16,16,16");
  testing::with_one_worker(trainer_options(), [](testing::RunParts& parts) {
    CHECK_FALSE(parts.state.metadata().contains("fast.batches"));
  });
}

TEST_CASE("a balance that does not fit the run is refused") {
  const auto refused = [](const train::TrainerOptions& options, const char* why) {
    const auto groups = local::make_groups(3);
    CHECK_THROWS_WITH(balanced_plan(groups[0], options), ContainsSubstring(why));
  };
  refused(balanced_options("1,2"), "2 numbers, this run has 3 workers");
  train::TrainerOptions options = balanced_options("1,2,3");
  options.batch_size = 0;
  refused(options, "batch size of 0");
  options = balanced_options("measured");
  options.shards = data::sharding_from("dirichlet:0.5");
  refused(options, "each worker keeps its own samples");
  options = balanced_options("measured");
  options.worker.algorithm = algorithm::none();
  refused(options, "workers that train alone");
}
