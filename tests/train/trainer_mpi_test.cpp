#include <fast/topology/stencil.hpp>

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
