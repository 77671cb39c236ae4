// Stages give the losses of whole models.   mpiexec -n STAGES * REPLICAS pipeline_test
#include <cmath>
#include <fast/core/error.hpp>

#include "pipeline/runs.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;

namespace {

constexpr Seconds plenty{60};

/// The losses of all steps of all replicas, in stages and whole. Each rank has those that it
/// computes; the others are 0.
struct BothLosses {
  std::vector<double> split, whole;
};

void set_steps(std::vector<double>& losses, int replica, int steps,
               const std::function<std::optional<double>()>& step) {
  for (int i = 0; i < steps; ++i) {
    const auto loss = step();
    if (loss) losses[static_cast<std::size_t>(replica * steps + i)] = *loss;
  }
}

/// The sum over ranks: one rank has a value, the others 0.
std::vector<double> summed(const std::vector<double>& values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(double));
  std::vector<double> sum(values.size());
  for (const std::string& part :
       testing::world().all_gather(bytes, Deadline(plenty), "gathering losses")) {
    const auto* theirs = reinterpret_cast<const double*>(part.data());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += theirs[i];
  }
  return sum;
}

BothLosses train_both(const pipeline::Settings& settings) {
  const mpi::Communicator& world = testing::world();
  const pipeline::Task task = pipeline::make_task(settings.seed);
  const int replicas = world.size() / static_cast<int>(settings.cuts.size() + 1);
  BothLosses losses;
  losses.split.resize(static_cast<std::size_t>(replicas * settings.steps));
  losses.whole.resize(losses.split.size());
  {
    pipeline::SplitRun run(world, settings, task);
    set_steps(losses.split, run.replica(), settings.steps, [&] { return run.step(); });
    CHECK(run.finish() == (run.replica() == 0));
  }
  const bool computes = world.rank() < replicas;
  const mpi::Communicator part = world.split(computes ? 0 : 1, Deadline(plenty));
  if (computes) {
    pipeline::WholeRun run(part, settings, task);
    set_steps(losses.whole, world.rank(), settings.steps, [&] { return run.step(); });
    run.finish();
  }
  return {summed(losses.split), summed(losses.whole)};
}

void check_equal_losses(const pipeline::Settings& settings) {
  INFO(settings.algorithm << ", model " << settings.model << ", " << settings.cuts.size()
                          << " cuts, " << settings.micro_batches << " micro-batches");
  const BothLosses losses = train_both(settings);
  if (testing::world().rank() != 0) return;
  for (std::size_t i = 0; i < losses.split.size(); ++i) {
    INFO("loss " << i);
    REQUIRE(losses.whole[i] > 0);
    REQUIRE(std::abs(losses.split[i] - losses.whole[i]) <= 1e-6);
  }
  // The workers learn: the losses are not all those of the first step.
  CHECK(losses.whole[static_cast<std::size_t>(settings.steps) - 1] < 0.9 * losses.whole[0]);
}

pipeline::Settings settings_for(const char* model, std::vector<std::size_t> cuts) {
  pipeline::Settings settings;
  settings.model = model;
  settings.cuts = std::move(cuts);
  settings.batch = 13;
  settings.steps = 25;
  settings.micro_batches = 3;
  settings.learning_rate = 0.02;
  return settings;
}

bool fits(const pipeline::Settings& settings) {
  return testing::world().size() % static_cast<int>(settings.cuts.size() + 1) == 0;
}

}  // namespace

TEST_CASE("stages train with the losses of whole models, with several rules") {
  for (const char* rule : {"awc", "allreduce", "atc", "gradient_tracking"}) {
    pipeline::Settings settings = settings_for("mlp:64-32", {2});
    settings.algorithm = rule;
    if (fits(settings)) check_equal_losses(settings);
  }
}

TEST_CASE("a convolutional network is cut between images, and after a flatten") {
  for (const std::vector<std::size_t>& cuts :
       {std::vector<std::size_t>{3}, std::vector<std::size_t>{7}, std::vector<std::size_t>{3, 7}}) {
    pipeline::Settings settings = settings_for("lenet", cuts);
    settings.micro_batches = cuts.size() == 2 ? 5 : 1;
    if (fits(settings)) check_equal_losses(settings);
  }
}

TEST_CASE("ranks that are no multiple of the stages are refused on every rank") {
  const mpi::Communicator& world = testing::world();
  const pipeline::Settings many = settings_for("mlp:9-9-9-9-9-9", {2, 4, 6, 8, 10, 12});
  const pipeline::Task task = pipeline::make_task(1);
  CHECK_THROWS_WITH(
      pipeline::SplitRun(world, many, task),
      ContainsSubstring(fmt::format("{} ranks are not divisible by 7 shards", world.size())));
  const pipeline::Settings none = settings_for("mlp", {3});
  CHECK_THROWS_WITH(pipeline::plan_of(none), ContainsSubstring("a cut after 3 layers"));
}
