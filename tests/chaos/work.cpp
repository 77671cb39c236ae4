#include "chaos/work.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fast/fast.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "chaos/bounds.hpp"
#include "chaos/problem.hpp"
#include "support/host_accelerator.hpp"

namespace chaos {
namespace {

using namespace fast;

constexpr std::size_t device_bytes = std::size_t{64} << 20;
constexpr std::size_t memory_left_bytes = std::size_t{16} << 20,
                      wanted_bytes = std::size_t{4} << 20;

/// Another process continues this one, which then stops.
void stop_for(double seconds) {
  const std::string command =
      fmt::format("(sleep {}; kill -CONT {}) >/dev/null 2>&1 &", seconds, getpid());
  if (std::system(command.c_str()) == 0) raise(SIGSTOP);
}

/// What this process has now and a little more is all that it gets.
void limit_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<std::size_t>(getpagesize()) + memory_left_bytes;
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

/// Makes the plan's events happen, when the worker comes to their rounds.
class Events {
 public:
  Events(const Plan& plan, int rank, std::string directory)
      : plan_(plan), rank_(rank), directory_(std::move(directory)), happened_(plan.events.size()) {}

  void before_start() const {
    if (is_in(plan_.victims_of(Kind::start), rank_)) raise(SIGKILL);
  }
  void at_end() const {
    if (is_in(plan_.victims_of(Kind::end), rank_)) raise(SIGKILL);
  }
  void at(std::int64_t round) {
    for (std::size_t number = 0; number < happened_.size(); ++number) {
      const Event& event = plan_.events[number];
      const bool concerned =
          is_of_links(event.kind) || event.kind == Kind::host || is_in(event.victims, rank_);
      if (!concerned || happened_[number] || round < event.round) continue;
      happened_[number] = true;
      begin(event, number);
    }
  }
  /// Within a step.
  void during_step() {
    if (slow_until_ && !slow_until_->expired())
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * pause_ms(plan_)));
    if (is_hungry_) eaten_.emplace_back(wanted_bytes, 'x');
  }
  bool is_victim(Kind kind) const { return is_in(plan_.victims_of(kind), rank_); }

 private:
  void begin(const Event& event, std::size_t number) {
    if (event.kind == Kind::slow) slow_until_.emplace(Seconds(event.length_s));
    if (event.kind == Kind::memory) {
      limit_memory();
      is_hungry_ = true;
    }
    // After the delay, from a thread of its own, wherever the worker is then.
    std::thread([event, number, rank = rank_, directory = directory_] {
      std::this_thread::sleep_for(std::chrono::microseconds(event.delay_us));
      if (event.kind == Kind::stop) stop_for(event.length_s);
      if (event.kind == Kind::kill) raise(SIGKILL);
      if (is_of_links(event.kind) || event.kind == Kind::host)
        std::ofstream(fmt::format("{}/event-{}", directory, number));
      if (event.kind != Kind::clock) return;
      set_clock(directory, rank, event.amount);
      std::this_thread::sleep_for(Seconds(event.length_s));
      set_clock(directory, rank, 0);
    }).detach();
  }

  const Plan& plan_;
  int rank_;
  std::string directory_;
  std::vector<bool> happened_;
  std::optional<Deadline> slow_until_;
  bool is_hungry_ = false;
  std::vector<std::string> eaten_;
};

/// Workers that never wait would end one by one, and the last of them train alone, towards its own
/// target: they go on until all that live have made their rounds. Not where all average together:
/// such rounds keep them together, and each average needs every worker.
bool others_are_at_it(const Plan& plan, int rank, const std::string& directory) {
  if (plan.staleness >= 0 || bound_of(plan.rule).everybody) return false;
  const auto done = [&](int worker) { return fmt::format("{}/done-{}", directory, worker); };
  if (!std::filesystem::exists(done(rank))) std::ofstream(done(rank)).put('\n');
  std::vector<int> away = plan.killed();
  for (const int victim : plan.victims_of(Kind::memory)) away.push_back(victim);
  for (int worker = 0; worker < plan.workers; ++worker) {
    if (!is_in(away, worker) && !std::filesystem::exists(done(worker))) return true;
  }
  return false;
}

double mass_of(Worker& worker) {
  for (const TensorView& view : worker.state()) {
    if (view.name == "push_sum.mass") return *static_cast<const double*>(view.data);
  }
  return 0;
}

void make_round(Worker& worker, Problem& problem, std::optional<RotatingArena<double>>& arena,
                Events& events) {
  if (!arena) {
    worker.step(
        [&] {
          events.during_step();
          problem.step(worker.round());
        },
        {.learning_rate = chaos::step});
    return;
  }
  arena->step(
      [&](const double* weights) {
        events.during_step();
        problem.find_gradients(weights);
      },
      [&](std::size_t, std::span<double> weights) { problem.update(weights); });
}

void leave(Worker& worker, const Group& group) {
  if (!worker.departed().lost.empty()) {
    group.disable_collectives();
    return;
  }
  try {
    group.barrier(Deadline(Seconds(30)), "chaos: the end");
  } catch (const Error&) {
    if (!group.some_are_gone()) throw;
    group.disable_collectives();
  }
}

void train(const Plan& plan, const Group& group, const std::string& directory) {
  Events events(plan, group.rank(), directory);
  events.before_start();
  const auto problem = problem_of(plan, group.size(), group.rank());
  WorkerOptions options = options_of(plan);
  if (plan.rotating) {
    agree(group, Deadline(options.deadline), "chaos: the arena",
          [&] { check_for_rotation(options); });
  }
  auto parameters = problem->parameters();
  for (TensorView& view : parameters) {
    if (plan.devices) view.device = options.accelerator->device();
  }
  Worker worker(group, topology_from(plan.topology), std::move(parameters), options);
  std::optional<RotatingArena<double>> arena;
  if (plan.rotating) arena.emplace(worker);
  int torn = 0;
  double longest_s = 0, mass = 0;
  std::int64_t rejoined = 0, since_rejoined = 0;
  while (worker.round() < rounds_of(plan) || others_are_at_it(plan, group.rank(), directory)) {
    events.at(worker.round());
    if (worker.round() % 20 == 0)
      std::ofstream(fmt::format("{}/progress-{}", directory, group.rank())) << worker.round();
    const auto began = Clock::now();
    make_round(worker, *problem, arena, events);
    const std::int64_t before = std::exchange(rejoined, worker.stats().rejoined);
    since_rejoined = rejoined == before ? since_rejoined + 1 : 0;
    longest_s = std::max(longest_s, Seconds(Clock::now() - began).count());
    if (!arena) torn += problem->torn() ? 1 : 0;
    if (worker.round() <= settled_round(plan)) mass = mass_of(worker);
  }
  worker.await_finish();
  events.at_end();
  const double own = problem->result();
  worker.mean_model(problem->parameters());
  torn += problem->torn() ? 1 : 0;
  std::ofstream(fmt::format("{}/result-{}", directory, group.rank()))
      << fmt::format("{} {} {} {} {} {} {} {}\n", problem->result(), own, torn, longest_s,
                     worker.departed().lost.size(), rejoined, since_rejoined, mass);
  leave(worker, group);
}

}  // namespace

WorkerOptions options_of(const Plan& plan) {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(plan.rule, parameters_of(plan));
  options.staleness = plan.staleness < 0 ? unbounded_staleness : plan.staleness;
  options.codec = codec::by_name(plan.codec);
  if (!plan.learns_suspicion) options.suspect_after = Seconds(suspect_after_s);
  options.deadline = Seconds(30);
  options.remote_path = plan.path == "pull"        ? RemotePathChoice::pull
                        : plan.path == "two_sided" ? RemotePathChoice::two_sided
                                                   : RemotePathChoice::measured;
  if (plan.devices) {
    options.accelerator = std::make_shared<testing::HostAccelerator>(
        testing::Sharing{.on_host = true, .by_mpi = true}, device_bytes);
  }
  options.log = [](LogLevel, std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  };
  return options;
}

int work(int argc, char** argv, const Plan& plan, const std::string& directory) {
  fake_clock(argv, plan, directory);
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    train(plan, Group(world), directory);
    return 0;
  });
}

}  // namespace chaos
