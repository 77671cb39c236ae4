#include <fast/core/error.hpp>
#include <fast/data/synthetic.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/train/shared_data.hpp>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::trainer_options;

TEST_CASE("ranks learn through shared windows, and all end with the same mean model") {
  const Group group(testing::world());
  const auto trained = testing::train_small(group, stencil::torus2d(), trainer_options());
  CHECK(trained.summary.exchange == "shared");
  CHECK(trained.summary.workers == group.size());
  CHECK(trained.summary.test_accuracy_mean_model > 0.95);
  const std::string mine(reinterpret_cast<const char*>(trained.mean_model.data()),
                         trained.mean_model.size() * sizeof(double));
  for (const std::string& theirs : group.all_gather(mine, Deadline(Seconds(30)), "comparing")) {
    CHECK((theirs == mine));
  }
}

TEST_CASE("ranks agree on measured shares while they train, at any staleness") {
  const Group group(testing::world());
  for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{4}}) {
    auto options = trainer_options();
    options.balance = train::balance_from("measured");
    options.worker.staleness = staleness;
    options.pace = {.step_s = 0.002, .slow = {{1, 4.0}}};
    const auto trained = testing::train_small(group, stencil::ring(), options);
    CHECK(trained.summary.test_accuracy_mean_model > 0.95);
    const auto rounds =
        testing::train_samples / static_cast<std::size_t>(group.size()) / options.batch_size;
    CHECK(trained.summary.rounds == 3 * rounds);
    CHECK(trained.summary.lost.empty());
  }
}

namespace {

data::Splits made_up(std::uint64_t seed) {
  const data::Dataset all = data::synthetic_classification(600, {3, 4}, 5, seed);
  return {all.slice(0, 500), all.slice(500, 100), all.measure()};
}

std::vector<float> values_of(const data::Dataset& data) {
  const auto values = std::get<std::span<const float>>(data.values());
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("ranks of a host load a data set once and read one copy of it") {
  const Group group(testing::world());
  const Deadline deadline(Seconds(30));
  int loads = 0;
  const auto load = [&] {
    ++loads;
    return made_up(7);
  };
  const data::Splits splits = train::load_once_a_host(group, "made up", deadline, load);
  CHECK(loads == (group.rank() == 0 ? 1 : 0));
  CHECK(values_of(splits.train) == values_of(made_up(7).train));
  CHECK(values_of(splits.test) == values_of(made_up(7).test));
  CHECK(splits.normalization.mean == made_up(7).normalization.mean);
  group.barrier(deadline, "done");  // all have let the first rank's memory go by now
  CHECK(splits.train.labels()[13] == 3);
}

TEST_CASE("ranks that load different data sets each load their own") {
  const Group group(testing::world());
  const auto seed = static_cast<std::uint64_t>(group.rank());
  int loads = 0;
  const data::Splits splits =
      train::load_once_a_host(group, fmt::format("seed {}", seed), Deadline(Seconds(30)), [&] {
        ++loads;
        return made_up(seed);
      });
  CHECK(loads == 1);
  CHECK(values_of(splits.train) == values_of(made_up(seed).train));
}

TEST_CASE("a data set that one rank cannot load is an error on all ranks") {
  const Group group(testing::world());
  const auto load = []() -> data::Splits { fail(ErrorKind::data, "it is damaged"); };
  CHECK_THROWS_WITH(train::load_once_a_host(group, "bad", Deadline(Seconds(30)), load),
                    "it is damaged");
}

TEST_CASE("two runs on ranks give the same bits, whatever the exchange") {
  const Group group(testing::world());
  for (const bool all_reduce : {false, true}) {
    auto options = trainer_options();
    options.all_reduce = all_reduce;
    const auto first = testing::train_small(group, stencil::ring(), options);
    const auto second = testing::train_small(group, stencil::ring(), options);
    CHECK((first.mean_model == second.mean_model));
  }
}
