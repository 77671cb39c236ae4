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
#include <fast/core/random.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "chaos/plan.hpp"
#include "chaos/verdict.hpp"
#include "support/temporary_directory.hpp"

using namespace chaos;

namespace {

constexpr fast::Seconds longest_run{120};
constexpr int skipped = 77;  ///< what ctest takes for a test that cannot be done here

struct Programs {
  std::string fastrun, self;
  std::string hosts;  ///< hosts.sh; empty: runs are on this host
  int host_count = 2;
  bool lenet = false, devices = false;
  std::vector<std::string> rules;  ///< empty: awc and atc
};

int call(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Hosts as long as it lives, one program at a time.
class Hosts {
 public:
  Hosts(const std::string& script, int count) : script_(script) {
    flock(open("/tmp/fasthosts.lock", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), LOCK_EX);
    if (call(fmt::format("{} up {}", script_, count)) != 0)
      throw std::runtime_error("hosts.sh up: no hosts");
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
    if (!cut_ && plan_.cuts() && std::filesystem::exists(request_)) {
      turn(plan_.one_link ? "cut 1 2" : "cut");
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
    if (plan.hosts > 1) words.insert(words.end(), {"--hosts", plan.host_list()});
    words.insert(words.end(), {programs.self, "--work", write(plan), directory});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(programs.fastrun.c_str(), arguments.data());
    _exit(127);
  }
  Link link(programs, plan, directory);
  // What stops this program for a while, stops its runs: such time is not theirs.
  fast::Seconds waited{0};
  for (auto last = fast::Clock::now(); waited < longest_run;) {
    const auto now = fast::Clock::now();
    waited += std::min(fast::Seconds(now - std::exchange(last, now)), fast::Seconds(0.1));
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

void show_log(const std::string& directory) {
  std::ifstream log(directory + "/log");
  for (std::string line; std::getline(log, line);) std::printf("    | %s\n", line.c_str());
}

/// UCX 1.13 ends a process that finds the connection broken while it answers a read: now and then,
/// where neighbors pull, a survivor's. Nothing can be done about it here.
bool ended_by_ucx(const std::string& directory) {
  std::ifstream log(directory + "/log");
  for (std::string line; std::getline(log, line);) {
    if (line.find("ucp_request.inl") != std::string::npos) return true;
  }
  return false;
}

/// What the same run comes to when nothing happens to it, in the mean over some seeds.
double undisturbed(const Programs& programs, Plan plan) {
  constexpr std::uint64_t seeds = 3;
  static std::mutex one_at_a_time;
  static std::map<std::string, double> known;
  const std::lock_guard lock(one_at_a_time);
  plan.kind = Kind::nothing;
  plan.round = plan.delay_us = 0;
  plan.pause_s = 0;
  plan.victims.clear();
  plan.seed = 0;
  const std::string key = write(plan);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  double sum = 0;
  while (plan.seed < seeds) {
    ++plan.seed;
    const fast::testing::TemporaryDirectory directory;
    run(programs, plan, directory.path().string());
    const auto results = results_in(directory.path().string(), plan.workers);
    sum += results.empty() ? 1 : results[0].mean;
  }
  return known[key] = sum / seeds;
}

/// Of all schedules so far.
struct Tally {
  std::uint64_t failures = 0;
  double longest_s = 0;  ///< that survivors were held
};

void try_one(const Programs& programs, std::uint64_t seed, std::uint64_t index, Tally& tally,
             int repeats = 2) {
  Plan plan =
      programs.hosts.empty() ? draw(seed, index) : draw_on_hosts(programs.host_count, seed, index);
  plan.devices = programs.devices;
  if (!programs.rules.empty()) choose_rule(plan, programs.rules, fast::mix_seed(seed, index));
  if (programs.lenet) train_lenet(plan, fast::mix_seed(seed, index));
  const fast::testing::TemporaryDirectory directory;
  const auto began = fast::Clock::now();
  const auto status = run(programs, plan, directory.path().string());
  const auto results = results_in(directory.path().string(), plan.workers);
  const double reference = plan.lenet ? undisturbed(programs, plan) : 0;
  const std::string wrong = judge(plan, status, results, reference);
  const bool dies = !plan.killed().empty();
  if (repeats > 0 && !wrong.empty() && dies && plan.path == "pull" &&
      ended_by_ucx(directory.path().string())) {
    std::printf("%3llu  once more: UCX has ended a survivor\n",
                static_cast<unsigned long long>(index));
    return try_one(programs, seed, index, tally, repeats - 1);
  }
  double held_s = 0;
  int rejoined = 0;
  for (const Result& one : results) {
    held_s = std::max(held_s, one.longest_s);
    rejoined += one.rejoined;
  }
  std::string outcome = wrong.empty() ? "ok" : wrong;
  if (plan.lenet && wrong.empty() && !results.empty()) {
    const auto worst =
        std::min_element(results.begin(), results.end(),
                         [](const Result& a, const Result& b) { return a.mean < b.mean; });
    outcome += fmt::format(" ({:.2f} %, {:.2f} % when nothing happens)", 100 * worst->mean,
                           100 * reference);
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
      plan.hosts > 1 ? (" by " + plan.path + (plan.large ? ", large" : "")).c_str() : "",
      plan.topology.c_str(), plan.algorithm.c_str(), static_cast<long long>(plan.staleness),
      fast::Seconds(fast::Clock::now() - began).count(), held_s, rejoined, outcome.c_str());
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
                 "tests/hosts/hosts.sh: several hosts instead of one, and cut links");
  app.add_option("--host-count", programs.host_count, "of --hosts")->check(CLI::Range(2, 3));
  app.add_flag("--lenet", programs.lenet, "LeNet on Fashion-MNIST instead of a parabola");
  app.add_flag("--devices", programs.devices,
               "weights on devices, as the host plays them: read in place and by MPI");
  app.add_option("--rules", programs.rules, "all, or names: instead of awc and atc")
      ->delimiter(',')
      ->check(CLI::IsMember([] {
        std::vector<std::string> names = all_rules();
        names.emplace_back("all");
        return names;
      }()));
  CLI11_PARSE(app, argc, argv);
  if (programs.rules == std::vector<std::string>{"all"}) programs.rules = all_rules();
  if (!programs.hosts.empty() && call(programs.hosts + " check") != 0) return skipped;
  std::optional<Hosts> hosts;
  if (!programs.hosts.empty()) hosts.emplace(programs.hosts, programs.host_count);
  programs.self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Tally tally = try_all(programs, seed, from, count, hosts ? 1 : jobs);
  std::printf(
      "%llu schedules of seed %llu, %llu failures; survivors were held for %.2f s at most\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
      static_cast<unsigned long long>(tally.failures), tally.longest_s);
  return tally.failures == 0 ? 0 : 1;
}
