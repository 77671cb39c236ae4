#include "train/record/run_log.hpp"

#include <fast/topology/graphs.hpp>

#include "support/catch.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

const train::Metric* find(const std::vector<train::Metric>& facts, std::string_view name) {
  for (const train::Metric& fact : facts) {
    if (fact.name == name) return &fact;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("neighbors are those of all rounds of a period") {
  // Pairs (0 1) (2 3), then (1 2) (3 0).
  const Schedule pairs = schedule::alternating_pairs().make(4);
  CHECK(train::neighbors_of(pairs, 0) == std::vector<int>{1, 3});
  CHECK(train::neighbors_of(pairs, 2) == std::vector<int>{1, 3});
  CHECK(train::neighbors_of(stencil::ring().make(5), 4) == std::vector<int>{0, 3});
  CHECK(train::neighbors_of(stencil::ring().make(1), 0).empty());
}

TEST_CASE("the facts of a run are those of its options, with the names that were given") {
  train::TrainerOptions options = trainer_options();
  options.names = {.data = "made up", .model = "", .optimizer = "sgd, momentum 0.9"};
  options.worker.staleness = unbounded_staleness;
  options.learning_rate.base = 0.25;
  options.clock_offset_s = -1.5;
  with_one_worker(options, [&](RunParts& parts) {
    const auto facts = train::start_facts(parts.plan, parts.replica, {});
    CHECK(std::get<std::string>(find(facts, "data")->value) == "made up");
    CHECK(std::get<std::string>(find(facts, "optimizer")->value) == "sgd, momentum 0.9");
    CHECK(find(facts, "model") == nullptr);
    CHECK(std::get<std::string>(find(facts, "staleness")->value) == "inf");
    CHECK(std::get<double>(find(facts, "learning_rate")->value) == 0.25);
    CHECK(std::get<std::int64_t>(find(facts, "samples")->value) ==
          static_cast<std::int64_t>(train_samples));
    // 16 x 24 + 24 x 4 weights, 24 + 4 biases.
    CHECK(std::get<std::int64_t>(find(facts, "parameters")->value) == 508);
    CHECK(std::get<std::int64_t>(find(facts, "batch")->value) == 16);
    CHECK(find(facts, "resumed_step") == nullptr);
    CHECK(std::get<double>(find(facts, "clock_offset")->value) == -1.5);
    CHECK(find(facts, "resumed_from") == nullptr);
    const auto resumed = train::start_facts(parts.plan, parts.replica, {60, 62});
    CHECK(std::get<std::int64_t>(find(resumed, "resumed_from")->value) == 60);
    CHECK(std::get<std::int64_t>(find(resumed, "resumed_step")->value) == 62);
  });
}
