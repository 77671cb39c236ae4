// Runs with spares: workers die or are suspended, or spares join, at moments drawn from a seed.
// Each run must end by itself, with a worker on every seat, at the optimum of all seats' data.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fast/core/deadline.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "seats/launch.hpp"
#include "seats/plan.hpp"
#include "seats/work.hpp"
#include "support/temporary_directory.hpp"

using namespace seats;

namespace {

constexpr fast::Seconds longest_run{90};
constexpr int skipped = 77;  ///< what ctest takes for a test that cannot be done here

struct Programs {
  std::string fastrun, self, hosts;
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

/// The exit status; negative when it hung.
int run(const Programs& programs, const Plan& plan, const std::string& directory) {
  std::vector<std::string> words{programs.fastrun, "-n", std::to_string(plan.workers), "--spares",
                                 std::to_string(plan.spares)};
  if (plan.hosts > 1) words.insert(words.end(), {"--hosts", plan.host_list()});
  words.insert(words.end(), {"--control", directory + "/control"});
  words.insert(words.end(), {programs.self, "--work", write(plan), directory});
  return run_to_the_end(words, directory + "/log", longest_run);
}

/// Those with a seat; counts the others.
std::vector<Result> results_in(const std::string& directory, const Plan& plan, int& idle) {
  std::vector<Result> results;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    std::ifstream in(fmt::format("{}/rank-{}", directory, rank));
    Result one;
    if (!(in >> one.rank >> one.seat >> one.own >> one.mean >> one.lost >> one.torn >>
          one.longest_s))
      continue;
    if (one.seat < 0) {
      ++idle;
    } else {
      results.push_back(one);
    }
  }
  return results;
}

bool try_one(const Programs& programs, std::uint64_t index, const Plan& plan) {
  const fast::testing::TemporaryDirectory directory;
  const auto began = fast::Clock::now();
  const int status = run(programs, plan, directory.path().string());
  int idle = 0;
  const auto results = results_in(directory.path().string(), plan, idle);
  const std::string wrong = judge(plan, status, results, idle);
  double held_s = 0;
  for (const Result& one : results) held_s = std::max(held_s, one.longest_s);
  std::printf(
      "%3llu  %-15s {%s} of %d + %d on %d, %s %s, staleness %lld, %s: %.1f s, held %.2f s  %s\n",
      static_cast<unsigned long long>(index), name(plan.event).c_str(),
      fmt::format("{}", fmt::join(plan.victims, ", ")).c_str(), plan.workers, plan.spares,
      plan.hosts, plan.rule.c_str(), plan.topology.c_str(), static_cast<long long>(plan.staleness),
      plan.weights.c_str(), fast::Seconds(fast::Clock::now() - began).count(), held_s,
      wrong.empty() ? "ok" : wrong.c_str());
  if (!wrong.empty()) {
    std::ifstream log(directory.path() / "log");
    for (std::string line; std::getline(log, line);) std::printf("    | %s\n", line.c_str());
  }
  std::fflush(stdout);
  return wrong.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--work")
    return work(argc, argv, read(argv[2]), argv[3]);
  Programs programs;
  std::uint64_t count = 14, seed = 1, from = 0;
  int host_count = 2;
  bool devices = false;
  std::vector<std::string> rules = {"awc", "atc", "push_sum", "d2", "gradient_tracking", "choco"};
  CLI::App app("Runs with spares", "seats");
  app.option_defaults()->always_capture_default();
  app.add_option("fastrun", programs.fastrun, "the launcher")->required();
  app.add_option("--count", count, "schedules to try");
  app.add_option("--seed", seed, "of the schedules");
  app.add_option("--from", from, "the first schedule, to have one again");
  app.add_option("--hosts", programs.hosts, "tests/hosts/hosts.sh: several hosts instead of one");
  app.add_option("--host-count", host_count, "of --hosts");
  app.add_option("--rules", rules, "to choose from")->delimiter(',');
  app.add_flag("--devices", devices, "weights on devices, as the host plays them; without choco");
  CLI11_PARSE(app, argc, argv);
  if (devices) std::erase(rules, "choco");
  if (!programs.hosts.empty() && call(programs.hosts + " check") != 0) return skipped;
  std::optional<Hosts> hosts;
  if (!programs.hosts.empty()) hosts.emplace(programs.hosts, host_count);
  programs.self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::uint64_t failures = 0;
  for (std::uint64_t index = from; index < from + count; ++index) {
    const Plan plan = draw(seed, index, hosts ? host_count : 1, rules, devices);
    failures += try_one(programs, index, plan) ? 0 : 1;
  }
  std::printf("%llu schedules of seed %llu, %llu failures\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(failures));
  return failures == 0 ? 0 : 1;
}
