// Worker::set_schedule() takes the weights that the program has asked for, not those that the
// schedule before has got.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>

#include <mutex>

#include "support/catch.hpp"
#include "worker/constant.hpp"

using namespace fast;
using testing::Constant;

namespace {

/// All read all, with weights of their own.
Topology with_weights() {
  return {"given", {{1, 2}, {0, 2}, {0, 1}}, {{.25, .25}, {.25, .25}, {.25, .25}}, {.5, .5, .5}};
}
/// Each worker reads the one before.
Topology without_weights() { return {"plain", {{2}, {0}, {1}}}; }

/// Of worker r, when all hold their rank.
double mixed(const Topology& topology, int r) {
  if (topology.has_given_weights()) return 0.5 * r + 0.25 * ((r + 1) % 3) + 0.25 * ((r + 2) % 3);
  return 0.5 * r + 0.5 * ((r + 2) % 3);
}

void mix_from_ranks(Constant& c, int rank) {
  std::fill(c.x.begin(), c.x.end(), rank);
  c.worker.republish();
  c.worker.step([] {});
}

std::string warnings_after_change(const TopologyRule& first, const TopologyRule& second) {
  std::mutex mutex;
  std::string warnings;
  local::run(4, [&](const Group& group) {
    WorkerOptions options = testing::quick();
    bool changed = false;
    options.log = [&](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex);
      if (changed && level == LogLevel::warning) warnings += std::string(text) + "\n";
    };
    Constant c(group, first, group.rank(), options);
    changed = true;
    c.worker.set_schedule(second);
    c.worker.step([] {});
    c.worker.await_finish();
  });
  return warnings;
}

}  // namespace

TEST_CASE("a schedule follows with its own weights, whichever the one before had") {
  const Topology topologies[] = {with_weights(), without_weights()};
  for (const char* rule : {"push_sum", "awc", "atc"}) {
    for (const int first : {0, 1}) {
      INFO(rule << ", first " << topologies[first].name());
      local::run(3, [&](const Group& group) {
        WorkerOptions options = testing::quick();
        options.algorithm = algorithm::by_name(rule);
        Constant c(group, topologies[first], group.rank(), options);
        for (const int now : {first, 1 - first, first}) {
          if (now != first || c.worker.round() > 0) c.worker.set_schedule(topologies[now]);
          mix_from_ranks(c, group.rank());
          testing::expect_near(c.x[0], mixed(topologies[now], group.rank()),
                               topologies[now].name());
        }
      });
    }
  }
}

TEST_CASE("weights that were made lazy for one schedule are not lazy for the next") {
  local::run(4, [](const Group& group) {
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::d2();
    Constant c(group, stencil::ring(), group.rank(), options);  // its least eigenvalue is -1/3
    c.worker.set_schedule(stencil::complete());
    c.idle(4);  // the rule begins anew in the first one; lazy weights would halve what is left
    testing::expect_near(c.x[0], 1.5, "the complete graph averages at once");
  });
}

TEST_CASE("worker 0 logs what the user should know of the weights of a schedule that follows") {
  const Topology directed("directed", {{1}, {2}, {0}, {2}});  // its columns do not sum to 1
  const std::string notice = warnings_after_change(stencil::ring(), directed);
  CHECK_THAT(notice,
             ContainsSubstring("awc on directed") && ContainsSubstring("keeps the workers"));
  CHECK(std::count(notice.begin(), notice.end(), '\n') == 1);
  CHECK(warnings_after_change(directed, stencil::ring()).empty());
}

TEST_CASE("a schedule that the weights do not fit is refused in the call, and the old one stays") {
  local::run(3, [](const Group& group) {
    WorkerOptions options = testing::quick();
    options.weights = WeightRule::given;
    Constant c(group, with_weights(), group.rank(), options);
    bool refused = false;
    try {
      c.worker.set_schedule(without_weights());
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::topology;
    }
    testing::expect(refused, "a topology without weights has none that were given");
    c.worker.step([] {});
    testing::expect_near(c.x[0], mixed(with_weights(), group.rank()), "the old schedule");
  });
}

TEST_CASE("a schedule that robust averaging does not fit is refused in the call, or noticed") {
  local::run(4, [](const Group& group) {
    WorkerOptions options = testing::quick();
    options.robust = Robust::clip;
    std::string warnings;
    options.log = [&](LogLevel, std::string_view text) { warnings += std::string(text) + "\n"; };
    Constant c(group, stencil::complete(), group.rank(), options);
    bool refused = false;
    try {
      c.worker.set_schedule(schedule::one_peer_exponential());
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::topology;
    }
    testing::expect(refused, "nobody reads two neighbors");
    c.worker.set_schedule(topology_by_name("line"));
    const bool is_told = warnings.find("reads one neighbor") != std::string::npos;
    testing::expect(is_told == (group.rank() == 0), "worker 0 tells: " + warnings);
    c.idle(2);
    c.worker.await_finish();
  });
}

TEST_CASE("a rule that keeps what came over each edge takes no other tree") {
  local::run(4, [](const Group& group) {
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::relay_sum({.degree = 3});
    Constant c(group, stencil::grid1d(), group.rank(), options);
    std::string said;
    try {
      c.worker.set_schedule(graph::star());
    } catch (const Error& error) {
      said = error.what();
    }
    testing::expect(said.find("make a new Worker") != std::string::npos, said);
    c.idle(2);
    c.worker.await_finish();
  });
}
