// One rank: gradient descent on a parabola, its weights all equal at any time unless a read was
// torn.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fast/fast.hpp>
#include <fast/topology/load.hpp>
#include <fstream>
#include <thread>

#include "chaos/plan.hpp"

namespace chaos {
namespace {

using namespace fast;

constexpr std::size_t elements = 30'000;
constexpr auto pause_of_a_step = std::chrono::milliseconds(2);

/// Another process continues this one, which then stops.
void stop_for(double seconds) {
  const std::string command =
      fmt::format("(sleep {}; kill -CONT {}) >/dev/null 2>&1 &", seconds, getpid());
  if (std::system(command.c_str()) == 0) raise(SIGSTOP);
}

/// Strikes after the delay, from a thread of its own, wherever the worker is then.
void strike(const Plan& plan) {
  std::thread([plan] {
    std::this_thread::sleep_for(std::chrono::microseconds(plan.delay_us));
    if (plan.kind == Kind::stop) {
      stop_for(plan.pause_s);
    } else {
      raise(SIGKILL);
    }
  }).detach();
}

struct Outcome {
  int torn = 0;
  double longest_s = 0;
};

void all_equal(const std::vector<double>& x, Outcome& outcome) {
  if (std::any_of(x.begin(), x.end(), [&](double value) { return value != x[0]; })) ++outcome.torn;
}

WorkerOptions options_of(const Plan& plan) {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(plan.algorithm);
  options.staleness = plan.staleness < 0 ? unbounded_staleness : plan.staleness;
  options.suspect_after = Seconds(suspect_after_s);
  options.deadline = Seconds(30);
  options.log = [](LogLevel, std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  };
  return options;
}

void train(const Plan& plan, const Group& group, const std::string& directory) {
  const bool victim = std::count(plan.victims.begin(), plan.victims.end(), group.rank()) > 0;
  if (victim && plan.kind == Kind::kill_at_start) raise(SIGKILL);
  std::vector<double> x(elements, 0.0);
  Worker worker(group, topology_from(plan.topology), {view_of("x", std::span(x))},
                options_of(plan));
  Outcome outcome;
  while (worker.round() < rounds_of(plan)) {
    const bool struck = victim && worker.round() == plan.round;
    if (struck && plan.kind != Kind::slow && plan.kind != Kind::kill_at_end) strike(plan);
    const auto began = Clock::now();
    worker.step([&] {
      std::this_thread::sleep_for(victim && plan.kind == Kind::slow ? 4 * pause_of_a_step
                                                                    : pause_of_a_step);
      for (double& value : x) value += step * (target(group.rank()) - value);
    });
    outcome.longest_s = std::max(outcome.longest_s, Seconds(Clock::now() - began).count());
    all_equal(x, outcome);
  }
  worker.await_finish();
  if (victim && plan.kind == Kind::kill_at_end) raise(SIGKILL);
  std::vector<double> mean(elements);
  worker.mean_model({view_of("x", std::span(mean))});
  all_equal(mean, outcome);
  const WorkerStats stats = worker.stats();
  std::ofstream(fmt::format("{}/result-{}", directory, group.rank()))
      << fmt::format("{} {} {} {} {} {}\n", mean[0], x[0], outcome.torn, outcome.longest_s,
                     worker.lost().size(), stats.rejoined);
  if (!worker.lost().empty()) {
    group.give_up();
    return;
  }
  try {
    group.barrier(Deadline(Seconds(30)), "chaos: the end");
  } catch (const Error&) {
    if (!group.some_are_gone()) throw;
    group.give_up();
  }
}

}  // namespace

int work(int argc, char** argv, const Plan& plan, const std::string& directory) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    train(plan, Group(world), directory);
    return 0;
  });
}

}  // namespace chaos
