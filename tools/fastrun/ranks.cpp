#include "ranks.hpp"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fastrun {

int ranks_on_a_host(const Options& options) {
  if (options.ranks_per_host > 0) return options.ranks_per_host;
  const char* in_slurm = std::getenv("SLURM_NNODES");
  long hosts = 1;
  if (!options.hosts.empty()) {
    hosts += std::count(options.hosts.begin(), options.hosts.end(), ',');
  } else if (in_slurm != nullptr) {
    hosts = std::max(1, std::atoi(in_slurm));
  }
  return static_cast<int>((all_ranks(options) + hosts - 1) / hosts);
}

int cores_of_a_slurm_task(const Options& options) {
  const char* cores = std::getenv("SLURM_CPUS_PER_TASK");
  return cores != nullptr && options.hosts.empty() ? std::max(0, std::atoi(cores)) : 0;
}

bool Rank::succeeded() const {
  return state == State::ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const char* Rank::how_ended() const {
  if (succeeded()) return "left";
  // A shell ends with 128 + signal where its program died of a signal. MPI may abort with 255.
  constexpr int shell = 128, signals = 64;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : shell + WTERMSIG(status);
  const bool by_signal = code > shell && code <= shell + signals;
  return by_signal || lost ? "died" : "failed";
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

Ranks::Ranks(const Options& options) : ranks_(static_cast<std::size_t>(all_ranks(options))) {
  std::for_each(ranks_.begin() + options.ranks, ranks_.end(),
                [](Rank& spare) { spare.trains = false; });
}

int Ranks::count(const std::function<bool(const Rank&)>& condition) const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), condition));
}

std::vector<int> Ranks::in_state(Rank::State state) const {
  std::vector<int> found;
  for (int number = 0; number < size(); ++number) {
    if ((*this)[number].state == state) found.push_back(number);
  }
  return found;
}

std::optional<int> Ranks::first_that_trains() const {
  for (int number = 0; number < size(); ++number) {
    const Rank& one = (*this)[number];
    if (one.state == Rank::State::running && one.stays()) return number;
  }
  return std::nullopt;
}

bool Ranks::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& one) { return one.state == Rank::State::ended; });
}

bool Ranks::some_are_lost() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.lost; });
}

bool Ranks::training_began() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.began; });
}

bool Ranks::trained_ones_go_on() const {
  return training_began() && std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& one) {
           return one.state == Rank::State::running;
         });
}

}  // namespace fastrun
