// Runs that something happens to:  chaos FASTRUN [--count N] [--seed S] [--from K]
// Each must end by itself, with the survivors where they should be and no torn value seen.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fast/core/deadline.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <thread>

#include "chaos/plan.hpp"
#include "support/temporary_directory.hpp"

using namespace chaos;

namespace {

constexpr fast::Seconds longest_run{60};

struct Result {
  int rank = 0;
  double mean = 0, own = 0, longest_s = 0;
  int torn = 0, lost = 0, rejoined = 0;
};

std::vector<Result> results_in(const std::string& directory, int workers) {
  std::vector<Result> results;
  for (int rank = 0; rank < workers; ++rank) {
    std::ifstream in(fmt::format("{}/result-{}", directory, rank));
    Result one{};
    one.rank = rank;
    if (in >> one.mean >> one.own >> one.torn >> one.longest_s >> one.lost >> one.rejoined)
      results.push_back(one);
  }
  return results;
}

/// The exit status, or nothing when it hung.
std::optional<int> run(const std::string& fastrun, const std::string& self, const Plan& plan,
                       const std::string& directory) {
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    const int log = open((directory + "/log").c_str(), O_WRONLY | O_CREAT, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    const std::string workers = std::to_string(plan.workers), line = write(plan);
    execl(fastrun.c_str(), "fastrun", "--start-deadline", "5", "-n", workers.c_str(), self.c_str(),
          "--work", line.c_str(), directory.c_str(), nullptr);
    _exit(127);
  }
  for (const fast::Deadline deadline(longest_run); !deadline.expired();) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(-child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(-child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(-child, SIGKILL);
  waitpid(child, nullptr, 0);
  return std::nullopt;
}

double tolerance(const Plan& plan) {
  // One peer a round and stale reads are not symmetric at every moment.
  // Workers that never wait end at different times, the last of them alone.
  if (plan.topology == "one_peer_exponential" || plan.staleness < 0) return 0.25;
  return plan.staleness == 0 ? 0.02 : 0.1;
}

/// Directed edges without some workers keep no mean: whoever reads nobody goes where it would
/// alone.
std::string between_targets(const std::vector<Result>& results) {
  double lowest = HUGE_VAL, highest = -HUGE_VAL;
  for (const Result& one : results) {
    lowest = std::min(lowest, target(one.rank));
    highest = std::max(highest, target(one.rank));
  }
  for (const Result& one : results) {
    if (one.own < lowest - 0.02 || one.own > highest + 0.02)
      return fmt::format("worker {} stands at {:.4f}, outside of [{:.4f}, {:.4f}]", one.rank,
                         one.own, lowest, highest);
  }
  return "";
}

/// Empty when all is as it should be.
std::string judge(const Plan& plan, std::optional<int> status, const std::vector<Result>& results) {
  if (!status) return "it hung";
  const bool dies = plan.kind == Kind::kill || plan.kind == Kind::kill_two;
  if (plan.kind == Kind::kill_at_start) {
    return *status != 0 && results.empty() ? "" : "it went on without a worker that never began";
  }
  if (*status != 0) return fmt::format("fastrun ended with status {}", *status);
  const auto expected = static_cast<std::size_t>(plan.workers) -
                        (dies || plan.kind == Kind::kill_at_end ? plan.victims.size() : 0);
  if (results.size() != expected)
    return fmt::format("{} workers came to an end, {} should have", results.size(), expected);
  // One that came back when the others had come to their end made its last rounds alone.
  const auto any = [&](int Result::*count) {
    return std::any_of(results.begin(), results.end(),
                       [count](const Result& one) { return one.*count > 0; });
  };
  const bool left_out = plan.kind == Kind::stop && plan.pause_s > suspect_after_s;
  const bool too_late = left_out && (any(&Result::lost) || !any(&Result::rejoined));
  const auto counted = static_cast<double>(results.size() - (too_late ? 1 : 0));
  double optimum = 0, found = 0;
  for (const Result& one : results) {
    if (one.torn > 0) return fmt::format("worker {} saw {} torn values", one.rank, one.torn);
    if (!too_late || one.rank != plan.victims[0]) {
      optimum += target(one.rank) / counted;
      found += one.own / counted;
    }
    if (dies && one.longest_s > 2 * suspect_after_s + 2)
      return fmt::format("worker {} was held for {:.1f} s", one.rank, one.longest_s);
  }
  if (plan.kind == Kind::kill_at_end) return "";
  if (dies && plan.topology == "one_peer_exponential") return between_targets(results);
  if (std::abs(found - optimum) > tolerance(plan))
    return fmt::format("the survivors stand at {:.4f}, their optimum is {:.4f}", found, optimum);
  return "";
}

void show_log(const std::string& directory) {
  std::ifstream log(directory + "/log");
  for (std::string line; std::getline(log, line);) std::printf("    | %s\n", line.c_str());
}

bool try_one(const std::string& fastrun, const std::string& self, std::uint64_t seed,
             std::uint64_t index, double& longest_s) {
  const Plan plan = draw(seed, index);
  const fast::testing::TemporaryDirectory directory;
  const fast::Deadline clock(longest_run);
  const auto status = run(fastrun, self, plan, directory.path().string());
  const auto results = results_in(directory.path().string(), plan.workers);
  const std::string wrong = judge(plan, status, results);
  const bool dies = plan.kind == Kind::kill || plan.kind == Kind::kill_two;
  double held_s = 0;
  int rejoined = 0;
  for (const Result& one : results) {
    held_s = std::max(held_s, one.longest_s);
    rejoined += one.rejoined;
  }
  if (dies) longest_s = std::max(longest_s, held_s);
  std::printf(
      "%3llu  %-13s of {%s} of %d, %s, %s, staleness %lld: %.1f s, longest round %.2f s, "
      "rejoined %d  %s\n",
      static_cast<unsigned long long>(index), name(plan.kind).c_str(),
      fmt::format("{}", fmt::join(plan.victims, ", ")).c_str(), plan.workers, plan.topology.c_str(),
      plan.algorithm.c_str(), static_cast<long long>(plan.staleness), clock.elapsed_s(), held_s,
      rejoined, wrong.empty() ? "ok" : wrong.c_str());
  if (!wrong.empty()) show_log(directory.path().string());
  std::fflush(stdout);
  return wrong.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--work") {
    const Plan plan = read(argv[2]);
    const std::string directory = argv[3];
    return work(argc, argv, plan, directory);
  }
  std::string fastrun;
  std::uint64_t count = 30, seed = 1, from = 0;
  CLI::App app("Runs that something happens to", "chaos");
  app.option_defaults()->always_capture_default();
  app.add_option("fastrun", fastrun, "the launcher")->required();
  app.add_option("--count", count, "schedules to try");
  app.add_option("--seed", seed, "of the schedules");
  app.add_option("--from", from, "the first schedule, to have one again");
  CLI11_PARSE(app, argc, argv);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::uint64_t failures = 0;
  double longest_s = 0;
  for (std::uint64_t index = from; index < from + count; ++index) {
    if (!try_one(fastrun, self, seed, index, longest_s)) ++failures;
  }
  std::printf(
      "%llu schedules of seed %llu, %llu failures; survivors were held for %.2f s at most\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
      static_cast<unsigned long long>(failures), longest_s);
  return failures == 0 ? 0 : 1;
}
