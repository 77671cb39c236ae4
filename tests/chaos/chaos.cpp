// Runs that something happens to; scripts/chaos.sh is for people. Each must end by itself, with the
// survivors where they should be and no torn value seen.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fast/core/deadline.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "chaos/plan.hpp"
#include "support/temporary_directory.hpp"

using namespace chaos;

namespace {

constexpr fast::Seconds longest_run{60};
constexpr int skipped = 77;  ///< what ctest takes for a test that cannot be done here

struct Programs {
  std::string fastrun, self;
  std::string hosts;  ///< hosts.sh; empty: runs are on this host
  bool lenet = false;
};

int call(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Two hosts as long as it lives, one program at a time.
class Hosts {
 public:
  explicit Hosts(const std::string& script) : script_(script) {
    flock(open("/tmp/fasthosts.lock", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), LOCK_EX);
    if (call(script_ + " up 2") != 0) throw std::runtime_error("hosts.sh up: no hosts");
    setenv("HYDRA_LAUNCHER", "ssh", 1);
    setenv("HYDRA_LAUNCHER_EXEC", script_.c_str(), 1);
    setenv("HYDRA_IFACE", "fasthosts", 1);
  }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts() { call(script_ + " down"); }

 private:
  std::string script_;
};

/// Cuts the link between the hosts when a rank asks for it, and mends it after the plan's pause.
class Link {
 public:
  Link(const Programs& programs, const Plan& plan, const std::string& directory)
      : programs_(programs), plan_(plan), request_(directory + "/cut") {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() {
    if (cut_ && !mended_) turn("mend");
  }

  void look() {
    if (!cut_ && plan_.kind == Kind::cut && std::filesystem::exists(request_)) {
      turn("cut");
      cut_.emplace(fast::Seconds(plan_.pause_s));
    } else if (cut_ && !mended_ && cut_->expired()) {
      turn("mend");
      mended_ = true;
    }
  }

 private:
  void turn(const char* how) const { call(programs_.hosts + " " + how); }

  const Programs& programs_;
  const Plan& plan_;
  std::string request_;
  std::optional<fast::Deadline> cut_;
  bool mended_ = false;
};

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
std::optional<int> run(const Programs& programs, const Plan& plan, const std::string& directory) {
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    const int log = open((directory + "/log").c_str(), O_WRONLY | O_CREAT, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    std::vector<std::string> words{"fastrun", "--start-deadline", "3", "-n",
                                   std::to_string(plan.workers)};
    if (plan.hosts > 1) {
      const std::string each = std::to_string(plan.ranks_per_host());
      words.insert(words.end(), {"--hosts", "10.99.0.1,10.99.0.2", "--ppn", each});
    }
    words.insert(words.end(), {programs.self, "--work", write(plan), directory});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(programs.fastrun.c_str(), arguments.data());
    _exit(127);
  }
  Link link(programs, plan, directory);
  for (const fast::Deadline deadline(longest_run); !deadline.expired();) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    link.look();
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

/// Survivors lose one point to a run that nothing happened to, at most, and what runs differ by
/// anyway.
std::string against_undisturbed(const Plan& plan, const std::vector<Result>& results,
                                double undisturbed) {
  constexpr double point = 0.01, spread = 0.01;
  // Two deaths may cut the topology into parts that train on by themselves, on a part of the data.
  if (plan.kind == Kind::kill_two) undisturbed -= 0.06;
  const auto mean = [&](const Result& one) {
    return plan.kind == Kind::kill_at_end ? one.own : one.mean;
  };
  for (const Result& one : results) {
    if (mean(one) < undisturbed - point - spread)
      return fmt::format("worker {} tells {:.2f} % right, {:.2f} % when nothing happens", one.rank,
                         100 * mean(one), 100 * undisturbed);
  }
  return "";
}

/// Empty when all is as it should be.
std::string judge(const Plan& plan, std::optional<int> status, const std::vector<Result>& results,
                  double undisturbed) {
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
  if (plan.lenet) return against_undisturbed(plan, results, undisturbed);
  // One that came back when the others had come to their end made its last rounds alone.
  const auto any = [&](int Result::*count) {
    return std::any_of(results.begin(), results.end(),
                       [count](const Result& one) { return one.*count > 0; });
  };
  const bool left_out = plan.kind == Kind::stop && plan.pause_s > suspect_after_s + 0.2;
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

/// What the same run comes to when nothing happens to it.
double undisturbed(const Programs& programs, Plan plan) {
  static std::mutex one_at_a_time;
  static std::map<std::string, double> known;
  const std::lock_guard lock(one_at_a_time);
  plan.kind = Kind::nothing;
  plan.round = plan.delay_us = 0;
  plan.pause_s = 0;
  plan.victims.clear();
  const std::string key = write(plan);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const fast::testing::TemporaryDirectory directory;
  run(programs, plan, directory.path().string());
  const auto results = results_in(directory.path().string(), plan.workers);
  return known[key] = results.empty() ? 1 : results[0].mean;
}

/// Of all schedules so far.
struct Tally {
  std::uint64_t failures = 0;
  double longest_s = 0;  ///< that survivors were held
};

void try_one(const Programs& programs, std::uint64_t seed, std::uint64_t index, Tally& tally) {
  Plan plan = programs.hosts.empty() ? draw(seed, index) : draw_on_two_hosts(seed, index);
  if (programs.lenet) train_lenet(plan);
  const fast::testing::TemporaryDirectory directory;
  const fast::Deadline clock(longest_run);
  const auto status = run(programs, plan, directory.path().string());
  const auto results = results_in(directory.path().string(), plan.workers);
  const std::string wrong =
      judge(plan, status, results, plan.lenet ? undisturbed(programs, plan) : 0);
  const bool dies = plan.kind == Kind::kill || plan.kind == Kind::kill_two;
  double held_s = 0;
  int rejoined = 0;
  for (const Result& one : results) {
    held_s = std::max(held_s, one.longest_s);
    rejoined += one.rejoined;
  }
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (dies) tally.longest_s = std::max(tally.longest_s, held_s);
  if (!wrong.empty()) ++tally.failures;
  std::printf(
      "%3llu  %-13s of {%s} of %d%s, %s, %s, staleness %lld: %.1f s, longest round %.2f s, "
      "rejoined %d  %s\n",
      static_cast<unsigned long long>(index), name(plan.kind).c_str(),
      fmt::format("{}", fmt::join(plan.victims, ", ")).c_str(), plan.workers,
      plan.hosts > 1 ? (" by " + plan.path).c_str() : "", plan.topology.c_str(),
      plan.algorithm.c_str(), static_cast<long long>(plan.staleness), clock.elapsed_s(), held_s,
      rejoined, wrong.empty() ? "ok" : wrong.c_str());
  if (!wrong.empty()) show_log(directory.path().string());
  std::fflush(stdout);
}

/// `jobs` schedules at a time: most of their time is spent waiting.
Tally try_all(const Programs& programs, std::uint64_t seed, std::uint64_t from, std::uint64_t count,
              int jobs) {
  Tally tally;
  std::atomic<std::uint64_t> next{from};
  const auto work = [&] {
    for (std::uint64_t index = next++; index < from + count; index = next++)
      try_one(programs, seed, index, tally);
  };
  std::vector<std::jthread> threads;
  for (int job = 0; job < jobs; ++job) threads.emplace_back(work);
  threads.clear();
  return tally;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--work") {
    const Plan plan = read(argv[2]);
    const std::string directory = argv[3];
    return work(argc, argv, plan, directory);
  }
  Programs programs;
  std::uint64_t count = 30, seed = 1, from = 0;
  int jobs = 1;
  CLI::App app("Runs that something happens to", "chaos");
  app.option_defaults()->always_capture_default();
  app.add_option("fastrun", programs.fastrun, "the launcher")->required();
  app.add_option("--count", count, "schedules to try");
  app.add_option("--seed", seed, "of the schedules");
  app.add_option("--from", from, "the first schedule, to have one again");
  app.add_option("--jobs", jobs, "schedules at a time, of one host")->check(CLI::PositiveNumber);
  app.add_option("--hosts", programs.hosts,
                 "tests/hosts/hosts.sh: two hosts instead of one, and cut links");
  app.add_flag("--lenet", programs.lenet, "LeNet on Fashion-MNIST instead of a parabola");
  CLI11_PARSE(app, argc, argv);
  if (!programs.hosts.empty() && call(programs.hosts + " check") != 0) return skipped;
  std::optional<Hosts> hosts;
  if (!programs.hosts.empty()) hosts.emplace(programs.hosts);
  programs.self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Tally tally = try_all(programs, seed, from, count, hosts ? 1 : jobs);
  std::printf(
      "%llu schedules of seed %llu, %llu failures; survivors were held for %.2f s at most\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
      static_cast<unsigned long long>(tally.failures), tally.longest_s);
  return tally.failures == 0 ? 0 : 1;
}
