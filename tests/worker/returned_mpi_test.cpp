// A worker that is away while the others finish makes its remaining rounds alone: it does not
// average with what they have published for these rounds without it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fast/worker/worker.hpp>
#include <fstream>
#include <memory>
#include <string>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "support/rules.hpp"
#include "support/temporary_directory.hpp"
#include "worker/quick.hpp"

using namespace fast;

namespace {

constexpr int rounds = 240, leaves_in = 40;
constexpr double step = 0.05;
/// (1 - step)^200 of a way of at most 8 is left, 3e-4. One average with others is a way of 1.
constexpr double tolerance = 0.01;

Deadline no_limit() { return Deadline(Seconds(60)); }
bool is_victim(int rank) { return rank == testing::world().size() - 1; }
double target(int rank) { return 2.0 * rank; }

struct Case {
  std::string rule;
  TopologyRule topology;
  algorithm::Parameters parameters{};
  std::int64_t staleness = 0;
  RemotePathChoice path = RemotePathChoice::two_sided;

  std::string text() const {
    return fmt::format("{} topology={} staleness={} path={}", rule, topology.name(), staleness,
                       path == RemotePathChoice::pull ? "pull" : "two_sided");
  }
};

Case case_of(std::string_view rule) {
  Case made{std::string(rule), testing::topology_for(rule), testing::short_of(rule)};
  if (rule == "sparta" || rule == "choco") made.parameters = {{"fraction", "1"}};
  // Alone, a way shrinks by sqrt(momentum + mu - mu * step) in a round: with .9, 12 ‰ are left.
  if (rule == "gut") made.parameters = {{"momentum", "0.5"}};
  return made;
}

/// A file that all ranks see, by which one of them tells another one something.
class Signal {
 public:
  Signal() {
    if (testing::world().rank() == 0) directory_ = std::make_unique<testing::TemporaryDirectory>();
    const std::string own = directory_ ? (*directory_ / "continue").string() : "";
    file_ = testing::world().all_gather(own, no_limit(), "a test's file").front();
  }
  void give() const { std::ofstream(file_).put('\n'); }
  /// Stops this process until the signal is given, or for 40 s.
  void stop_until_given() const {
    const std::string command = fmt::format(
        "(for k in $(seq 2000); do [ -e {} ] && break; sleep 0.02; done; kill -CONT {}) "
        ">/dev/null 2>&1 &",
        file_, getpid());
    if (std::system(command.c_str()) == 0) raise(SIGSTOP);
  }

 private:
  std::unique_ptr<testing::TemporaryDirectory> directory_;
  std::string file_;
};

/// Where this rank ends.
double end_of(const Case& c) {
  const int rank = testing::world().rank();
  const Signal signal;
  const mpi::Communicator survivors = testing::world().split(is_victim(rank) ? 1 : 0, no_limit());
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(c.rule, c.parameters);
  options.staleness = c.staleness;
  options.remote_path = c.path;
  options.suspect_after = Seconds(0.5);
  std::vector<double> x(100, 0.0);
  Worker worker(Group(testing::world()), c.topology, {view_of("x", std::span(x))}, options);
  while (worker.round() < rounds) {
    worker.step(
        [&] {
          if (is_victim(rank) && worker.round() == leaves_in) signal.stop_until_given();
          for (double& value : x) value += step * (target(rank) - value);
        },
        {.learning_rate = step});
  }
  // A survivor that a busy machine has held is not among the lost if it is back by then.
  if (!is_victim(rank)) survivors.barrier(no_limit(), "the survivors' end");
  worker.await_finish();
  if (rank == 0) {
    REQUIRE(worker.departed().lost == std::vector{testing::world().size() - 1});
    signal.give();
  }
  testing::world().all_gather("", no_limit(), "a test's end");
  return x[0];
}

void ends_alone(const Case& c) {
  if (testing::world().size() == 1) return;
  INFO(c.text());
  const double end = end_of(c), own = target(testing::world().rank());
  if (is_victim(testing::world().rank()) && std::abs(end - own) > tolerance)
    FAIL(fmt::format("{}: it ends at {}, its own target is {}", c.text(), end, own));
}

bool waits_for_all(const algorithm::RuleTraits& rule) {
  return rule.topology.scope == algorithm::Scope::everybody || rule.timing.average_every > 0;
}

bool is_on_several_hosts() { return testing::several_hosts(Group(testing::world())); }

/// All of them on few ranks; else some that differ in how they publish.
std::vector<std::string_view> rules_to_try() {
  if (is_on_several_hosts() || testing::world().size() > 3)
    return {"awc", "event_triggered", "noloco", "sparta"};
  std::vector<std::string_view> rules = algorithm::names();
  std::erase_if(rules, [](std::string_view rule) {
    return waits_for_all(algorithm::by_name(rule).traits());
  });
  return rules;
}

std::vector<RemotePathChoice> paths() {
  if (!is_on_several_hosts()) return {RemotePathChoice::two_sided};
  return {RemotePathChoice::two_sided, RemotePathChoice::pull};
}

}  // namespace

TEST_CASE("with every rule, a worker that returns when the others have finished trains alone") {
  for (const std::string_view rule : rules_to_try()) ends_alone(case_of(rule));
}

TEST_CASE("a worker of another host that returns too late trains alone, by every path") {
  for (const RemotePathChoice path : paths()) {
    for (const char* rule : {"local", "gasloc"}) {
      Case c = case_of(rule);
      c.topology = stencil::complete();
      c.path = path;
      ends_alone(c);
    }
  }
}

TEST_CASE("above staleness 0, a worker that returns when the others have finished trains alone") {
  for (const RemotePathChoice path : paths()) {
    for (const char* rule : {"gasloc", "push_sum"}) {
      Case c = case_of(rule);
      c.staleness = 2;
      c.path = path;
      ends_alone(c);
    }
  }
}

TEST_CASE("on directed edges, mass stays with a worker that returns too late") {
  if (is_on_several_hosts()) return;  // the readers' counters are the same there
  for (const char* rule : {"push_sum", "gradient_tracking"}) {
    Case c = case_of(rule);
    c.topology = stencil::ring(true);
    ends_alone(c);
  }
}
