#include "fastrun/ranks.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "cli/exit_status.hpp"
#include "core/contains.hpp"

namespace fastrun {

int ranks_on_a_host(const Options& options) {
  if (options.ranks_per_host > 0) return options.ranks_per_host;
  const char* in_slurm = std::getenv("SLURM_NNODES");
  long hosts = 1;
  if (!options.hosts.empty()) {
    hosts += std::ranges::count(options.hosts, ',');
  } else if (in_slurm != nullptr) {
    hosts = std::max(1, std::atoi(in_slurm));
  }
  return static_cast<int>((all_ranks(options) + hosts - 1) / hosts);
}

int cores_of_a_slurm_task(const Options& options) {
  const char* cores = std::getenv("SLURM_CPUS_PER_TASK");
  return cores != nullptr && options.hosts.empty() ? std::max(0, std::atoi(cores)) : 0;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

namespace {

constexpr std::ptrdiff_t most_hosts = 8;  ///< that a line names

struct Reason {
  std::string why;
  std::vector<std::string> hosts;
};

std::vector<Reason> reasons(const Ranks& ranks) {
  std::vector<Reason> found;
  for (int number = 0; number < ranks.size(); ++number) {
    const Rank& one = ranks[number];
    if (one.not_startable.empty()) continue;
    auto reason = std::ranges::find(found, one.not_startable, &Reason::why);
    if (reason == found.end()) reason = found.insert(found.end(), {one.not_startable, {}});
    if (!fast::contains(reason->hosts, one.host)) reason->hosts.push_back(one.host);
  }
  return found;
}

std::string names(const std::vector<std::string>& hosts) {
  const auto shown = std::min(most_hosts, std::ssize(hosts));
  const std::string all = fmt::format("{}", fmt::join(hosts.begin(), hosts.begin() + shown, ", "));
  return shown == std::ssize(hosts) ? all
                                    : fmt::format("{} and {} more", all, std::ssize(hosts) - shown);
}

/// The command line.
bool has_refused(const Rank& one) {
  return one.state == Rank::State::ended && WIFEXITED(one.status) &&
         WEXITSTATUS(one.status) == tools::wrong_usage;
}

}  // namespace

std::string missing_program(const std::string& program, const Ranks& ranks) {
  std::vector<std::string> places;
  for (const Reason& reason : reasons(ranks))
    places.push_back(fmt::format("on {} ({})", names(reason.hosts), reason.why));
  if (places.empty()) return {};
  return fmt::format("{} cannot be started {}", program, fmt::join(places, "; "));
}

std::string silent_failure(const Ranks& ranks, std::optional<int> first_failed) {
  const auto has_told = [](const Rank& one) {
    return !one.succeeded() && std::ranges::any_of(one.said, [](const std::string& line) {
      return line.find("rror: ") != std::string::npos;  // "error: ", "ValueError: "
    });
  };
  if (!first_failed || ranks.count(has_told) > 0) return {};
  const Rank& one = ranks[*first_failed];
  if (!one.said.empty()) return {};
  return fmt::format("rank {} (process {} on {}) {} and printed no error", *first_failed, one.pid,
                     one.host, describe(one.status));
}

std::string early_ends(const Ranks& ranks) {
  const std::vector<int> running = ranks.in_state(Rank::State::running);
  std::vector<std::string> ends;
  for (const int number : ranks.in_state(Rank::State::ended)) {
    const Rank& one = ranks[number];
    if (WIFEXITED(one.status))
      ends.push_back(fmt::format("rank {} {}", number, describe(one.status)));
  }
  if (ranks.training_began() || running.empty() || ends.empty()) return {};
  const std::size_t all = ends.size();
  ends.resize(std::min<std::size_t>(all, most_hosts));
  const std::string more = all > ends.size() ? fmt::format(" and {} more", all - ends.size()) : "";
  return fmt::format("{}{} before training began; rank{} {} may wait for {}", fmt::join(ends, ", "),
                     more, running.size() == 1 ? "" : "s", fmt::join(running, ", "),
                     all == 1 ? "it" : "them");
}

bool is_wrong_usage(const Ranks& ranks, std::optional<int> first_failed) {
  if (!first_failed || ranks.count([](const Rank& one) { return one.succeeded(); }) > 0)
    return false;
  return has_refused(ranks[*first_failed]);
}

std::optional<int> status_that_is_told(const Ranks& ranks, std::optional<int> first_failed) {
  const auto is_missing = [](const Rank& one) { return !one.not_startable.empty(); };
  if (ranks.count(is_missing) == ranks.size()) return tools::failed;
  const bool all_refuse = ranks.count(has_refused) == ranks.size();
  if (all_refuse && silent_failure(ranks, first_failed).empty()) return tools::wrong_usage;
  return std::nullopt;
}

}  // namespace fastrun
