#include "chaos/run.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fast/core/deadline.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

namespace chaos {
namespace {

constexpr fast::Seconds longest_silence{60}, longest_run{400};
constexpr int most_ranks = 16;

[[noreturn]] void become(std::vector<std::string> words,
                         const std::vector<std::string>& environment, const std::string& log) {
  setpgid(0, 0);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  for (const std::string& one : environment) {
    const std::size_t equals = one.find('=');
    setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(words[0].c_str(), arguments.data());
  _exit(127);
}

/// The rounds that all ranks have made, as they tell.
std::int64_t rounds_made(const std::filesystem::path& directory) {
  std::int64_t sum = 0, round = 0;
  for (int rank = 0; rank < most_ranks; ++rank) {
    std::ifstream in(directory / ("progress-" + std::to_string(rank)));
    if (in >> round) sum += round;
  }
  return sum;
}

/// Counts the time without progress. What stops this program for a while, stops its runs: such time
/// is not theirs.
class Patience {
 public:
  explicit Patience(std::filesystem::path directory) : directory_(std::move(directory)) {}
  bool is_over() {
    const auto now = fast::Clock::now();
    const fast::Seconds passed =
        std::min(fast::Seconds(now - std::exchange(last_, now)), fast::Seconds(0.1));
    all_ += passed;
    silent_ += passed;
    if (silent_ < longest_silence) return all_ > longest_run;
    const std::int64_t made = rounds_made(directory_);
    if (std::exchange(made_, made) == made) return true;
    silent_ = fast::Seconds(0);
    return false;
  }

 private:
  std::filesystem::path directory_;
  fast::Clock::time_point last_ = fast::Clock::now();
  fast::Seconds all_{0}, silent_{0};
  std::int64_t made_ = 0;
};

void end(pid_t child) {
  for (const int signal : {SIGINT, SIGINT, SIGKILL}) {
    kill(-child, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  waitpid(child, nullptr, 0);
}

}  // namespace

std::optional<int> run(const std::vector<std::string>& words,
                       const std::vector<std::string>& environment, const std::string& log,
                       Faults* faults) {
  const pid_t child = fork();
  if (child == 0) become(words, environment, log);
  for (Patience patience(std::filesystem::path(log).parent_path()); !patience.is_over();) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    if (faults != nullptr) faults->look();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  end(child);
  return std::nullopt;
}

Ending run_workers(const Programs& programs, const Hosts* hosts, const Plan& plan,
                   const std::string& directory) {
  std::vector<std::string> words{programs.fastrun, "--start-deadline", "3", "-n",
                                 std::to_string(plan.workers)};
  std::vector<std::string> environment;
  std::unique_ptr<Faults> faults;
  if (plan.hosts > 1 && hosts != nullptr) {
    words.insert(words.end(), {"--hosts", plan.host_list()});
    environment = {"HYDRA_LAUNCHER=ssh", "HYDRA_LAUNCHER_EXEC=" + hosts->script(),
                   "HYDRA_IFACE=fasthosts"};
    faults = std::make_unique<LinkFaults>(*hosts, plan, directory);
  }
  // Ranks hear of it before their own deadline of 30 s.
  if (plan.has(Kind::host)) words.insert(words.end(), {"--lost-after", "10"});
  words.insert(words.end(), {programs.self, "--work", write(plan), directory});
  const std::string log = directory + "/log";
  Ending ending;
  ending.status = run(words, environment, log, faults.get());
  ending.results = results_in(directory, plan.workers);
  ending.log = contents(log);
  return ending;
}

std::string contents(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace chaos
