// One rank of a run.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fast/fast.hpp>
#include <fast/topology/load.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "chaos/problem.hpp"
#include "support/host_accelerator.hpp"

namespace chaos {
namespace {

using namespace fast;

constexpr std::size_t device_bytes = std::size_t{64} << 20;

/// Another process continues this one, which then stops.
void stop_for(double seconds) {
  const std::string command =
      fmt::format("(sleep {}; kill -CONT {}) >/dev/null 2>&1 &", seconds, getpid());
  if (std::system(command.c_str()) == 0) raise(SIGSTOP);
}

/// Strikes after the delay, from a thread of its own, wherever the worker is then.
void strike(const Plan& plan, int rank, const std::string& directory) {
  std::thread([plan, rank, directory] {
    std::this_thread::sleep_for(std::chrono::microseconds(plan.delay_us));
    if (plan.kind == Kind::stop) stop_for(plan.pause_s);
    if (plan.cuts() && rank == plan.victims[0]) std::ofstream(directory + "/cut");
    const std::vector<int> killed = plan.killed();
    if (std::count(killed.begin(), killed.end(), rank) > 0) raise(SIGKILL);
  }).detach();
}

algorithm::Parameters parameters_of(const std::string& rule) {
  if (rule == "choco") return {{"fraction", "1"}};  // or elements would differ, as if torn
  return {};
}

WorkerOptions options_of(const Plan& plan) {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(plan.algorithm, parameters_of(plan.algorithm));
  options.staleness = plan.staleness < 0 ? unbounded_staleness : plan.staleness;
  options.suspect_after = Seconds(suspect_after_s);
  options.deadline = Seconds(30);
  options.remote_path = plan.path == "pull"        ? RemotePathChoice::pull
                        : plan.path == "two_sided" ? RemotePathChoice::two_sided
                                                   : RemotePathChoice::measured;
  options.log = [](LogLevel, std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  };
  return options;
}

/// Workers that never wait would end one by one, and the last of them train alone, towards its own
/// target: they go on until all that live have made their rounds.
bool others_are_at_it(const Plan& plan, int rank, const std::string& directory) {
  if (plan.staleness >= 0) return false;
  const auto done = [&](int worker) { return fmt::format("{}/done-{}", directory, worker); };
  if (!std::filesystem::exists(done(rank))) std::ofstream(done(rank)).put('\n');
  const std::vector<int> killed = plan.killed();
  for (int worker = 0; worker < plan.workers; ++worker) {
    const bool lives = std::count(killed.begin(), killed.end(), worker) == 0;
    if (lives && !std::filesystem::exists(done(worker))) return true;
  }
  return false;
}

double mass_of(Worker& worker) {
  for (const TensorView& view : worker.state()) {
    if (view.name == "push_sum.mass") return *static_cast<const double*>(view.data);
  }
  return 0;
}

void train(const Plan& plan, const Group& group, const std::string& directory) {
  const bool victim = std::count(plan.victims.begin(), plan.victims.end(), group.rank()) > 0;
  if (victim && plan.kind == Kind::kill_at_start) raise(SIGKILL);
  const auto problem = problem_of(plan, group.size(), group.rank());
  WorkerOptions options = options_of(plan);
  auto parameters = problem->parameters();
  if (plan.devices) {
    options.accelerator = std::make_shared<testing::HostAccelerator>(
        testing::Sharing{.on_host = true, .by_mpi = true}, device_bytes);
    for (TensorView& view : parameters) view.device = options.accelerator->device();
  }
  Worker worker(group, topology_from(plan.topology), std::move(parameters), options);
  int torn = 0;
  double longest_s = 0, mass = 0;
  while (worker.round() < rounds_of(plan) || others_are_at_it(plan, group.rank(), directory)) {
    const bool struck = victim && worker.round() == plan.round;
    if (struck && plan.kind != Kind::slow && plan.kind != Kind::kill_at_end)
      strike(plan, group.rank(), directory);
    const auto began = Clock::now();
    worker.step([&] { problem->step(worker.round()); }, {.learning_rate = chaos::step});
    longest_s = std::max(longest_s, Seconds(Clock::now() - began).count());
    torn += problem->torn() ? 1 : 0;
    if (worker.round() <= settled_round(plan)) mass = mass_of(worker);
  }
  worker.await_finish();
  if (victim && plan.kind == Kind::kill_at_end) raise(SIGKILL);
  const double own = problem->result();
  worker.mean_model(problem->parameters());
  torn += problem->torn() ? 1 : 0;
  const WorkerStats stats = worker.stats();
  std::ofstream(fmt::format("{}/result-{}", directory, group.rank()))
      << fmt::format("{} {} {} {} {} {} {}\n", problem->result(), own, torn, longest_s,
                     worker.lost().size(), stats.rejoined, mass);
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
