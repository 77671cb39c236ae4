// --topology auto by measured links. Each rank counts as a host of its own.
#include <fmt/core.h>

#include <fast/core/error.hpp>
#include <numeric>

#include "fast_train/automatic_topology.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using fast_train::Options;
using fast_train::Trial;

namespace {

const Deadline& patience() {
  static const Deadline deadline(Seconds(60));
  return deadline;
}

Options quick() {
  Options o;
  o.topology = "auto";
  o.measure_s = 0.2;
  o.trainer.worker.deadline = Seconds(30);
  return o;
}

/// Steps that take no time here, but say that they do.
Trial trial_of(int hosts, double payload_bytes, double step_s) {
  Trial trial;
  trial.hosts.resize(static_cast<std::size_t>(hosts));
  std::iota(trial.hosts.begin(), trial.hosts.end(), 0);
  trial.payload_bytes = payload_bytes;
  trial.steps = [=](Seconds) { return tools::StepTimes{step_s, 0}; };
  return trial;
}

ChosenTopology usual_of(const Trial& trial, const Options& o) {
  return choose_topology(trial.hosts, {.rule = o.rule.rule().traits()});
}

/// The choice, which is the same on all ranks.
std::string chosen(const Trial& trial, Options o) {
  const auto& world = testing::world();
  const ChosenTopology usual = usual_of(trial, o);
  o.topology = usual.name;
  fast_train::choose_by_links(world, Group(world), usual, trial, o);
  CHECK(o.measure_s == Options().measure_s);
  for (const std::string& each : world.all_gather(o.topology, patience(), "comparing")) {
    CHECK(each == o.topology);
  }
  return o.topology;
}

}  // namespace

TEST_CASE("robust averaging takes no topology of auto") {
  Options o = quick();
  o.trainer.worker.robust = Robust::clip;
  CHECK_THROWS_WITH(fast_train::choose_by_hosts(Group(testing::world()), o),
                    ContainsSubstring("--topology auto does not know"));
}

TEST_CASE("all ranks take what the plan of the measured links advises") {
  const int ranks = testing::world().size();
  // Messages of 1 KB hide behind steps of half a second. Three workers of a ring read all others.
  CHECK(chosen(trial_of(ranks, 1e3, 0.5), quick()) == (ranks == 3 ? "ring" : "base2"));
  // A terabyte takes longer than any step: base2 sends it once a round, a ring twice.
  CHECK(chosen(trial_of(ranks, 1e12, 1e-6), quick()) == "base2");
}

TEST_CASE("without a measurement, the choice by hosts stays") {
  const Trial trial = trial_of(testing::world().size(), 1e3, 0.5);
  Options none = quick();
  none.measure_s = 0;
  CHECK(chosen(trial, none) == "base2");
  Options fixed = quick();
  fixed.no_placement = true;
  CHECK(chosen(trial, fixed) == "base2");
  Options given = quick();
  given.trainer.worker.weights = WeightRule::metropolis;
  CHECK(chosen(trial, given) == "base2");
}

TEST_CASE("links do not change in which steps sites exchange") {
  Options o = quick();
  o.rule.name = "awc_gasloc";
  CHECK(chosen(trial_of(testing::world().size(), 1e3, 0.5), o) == "sites");
}

TEST_CASE("ranks whose options differ measure nothing and wait for nobody") {
  Options o = quick();
  if (testing::world().rank() == 1) o.measure_s = 0;
  CHECK(chosen(trial_of(testing::world().size(), 1e3, 0.5), o) == "base2");
}

TEST_CASE("spares wait for the choice of the workers") {
  if (testing::world().size() < 3) return;
  Options o = quick();
  o.spares = 1;
  CHECK(chosen(trial_of(2, 1e3, 0.5), o) == "base2");
}

TEST_CASE("a measurement may take longer than the deadline") {
  const int ranks = testing::world().size();
  Options o = quick();
  o.measure_s = 2.5;
  o.trainer.worker.deadline = Seconds(1);
  for (const int spares : {0, 1}) {
    if (ranks - spares < 2) continue;
    o.spares = spares;
    Trial trial = trial_of(ranks - spares, 1e12, 1e-6);
    trial.steps = [](Seconds budget) {
      const auto began = Clock::now();
      while (Clock::now() - began < budget) continue;
      return tools::StepTimes{1e-6, 0};
    };
    CHECK(chosen(trial, o) == "base2");
  }
}

TEST_CASE("a step that fails on one rank ends the choice on all") {
  Trial trial = trial_of(testing::world().size(), 1e3, 0.5);
  trial.steps = [](Seconds) -> tools::StepTimes {
    if (testing::world().rank() == 1) fail(ErrorKind::argument, "no such model");
    return {0.5, 0};
  };
  Options o = quick();
  const Group ranks(testing::world());
  CHECK_THROWS_WITH(
      fast_train::choose_by_links(testing::world(), ranks, usual_of(trial, o), trial, o),
      ContainsSubstring("no such model"));
}

TEST_CASE("hosts alone choose for other topologies and on one host") {
  const Group ranks(testing::world());
  Options named = quick();
  named.topology = "ring";
  CHECK_FALSE(fast_train::choose_by_hosts(ranks, named));
  CHECK(named.topology == "ring");
  Options o = quick();
  const auto found = fast_train::choose_by_hosts(ranks, o);
  REQUIRE(found);
  CHECK(o.topology == "torus2d");
  Trial trial = trial_of(1, 1e3, 0.5);
  trial.hosts = fast_train::hosts_of_workers(ranks, o);
  trial.steps = nullptr;  // is not called
  fast_train::choose_by_links(testing::world(), ranks, found, trial, o);
  CHECK(o.topology == "torus2d");
}

TEST_CASE("with GPUs on all ranks of a host, and on one alone") {
  const Group ranks(testing::world());
  Options all = quick(), one = quick();
  all.device = fmt::format("cuda:{}", ranks.rank());
  if (ranks.rank() == 1) one.device = "cuda";
  CHECK(fast_train::choose_by_hosts(ranks, all)->name == "base2");
  CHECK(fast_train::choose_by_hosts(ranks, one)->name == "torus2d");
}
