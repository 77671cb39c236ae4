#include "chaos/plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace chaos {
namespace {

constexpr int earliest_settled = 250;

void read_word(Plan& plan, const std::string& key, const std::string& text) {
  if (key == "rule") {
    plan.rule = text;
  } else if (key == "workers") {
    plan.workers = std::stoi(text);
  } else if (key == "topology") {
    plan.topology = text;
  } else if (key == "staleness") {
    plan.staleness = text == "inf" ? -1 : std::stoi(text);
  } else if (key == "codec") {
    plan.codec = text;
  } else if (key == "entries") {
    plan.sparse = text == "few";
  } else if (key == "arena") {
    plan.rotating = text == "rotating";
  } else if (key == "hosts") {
    plan.hosts = std::stoi(text);
  } else if (key == "path") {
    plan.path = text;
  } else if (key == "weights") {
    plan.large = text == "large";
    plan.devices = text == "devices";
  } else if (key == "data") {
    plan.lenet = text == "lenet";
  } else if (key == "suspect") {
    plan.learns_suspicion = text == "auto";
  } else if (key == "with") {
    std::istringstream names(text);
    for (std::string name; std::getline(names, name, ',');) plan.with.push_back(name);
  } else if (key == "seed") {
    plan.seed = std::stoull(text);
  } else {
    throw std::invalid_argument("a schedule's line has no \"" + key + "\"");
  }
}

/// TCP doubles the time until it sends again (RFC 6298), from .2 s on Linux. After a cut, a
/// connection may therefore be silent for as long as the cut was.
double silent_s(const Event& event) {
  return event.kind == Kind::cut ? 2 * event.length_s + 0.2 : event.length_s;
}

}  // namespace

bool Plan::has(Kind kind) const {
  return std::any_of(events.begin(), events.end(),
                     [kind](const Event& event) { return event.kind == kind; });
}

bool Plan::is_training() const {
  return std::any_of(events.begin(), events.end(),
                     [](const Event& event) { return is_of_training(event.kind); });
}

std::vector<int> Plan::victims_of(Kind kind) const {
  std::vector<int> all;
  for (const Event& event : events) {
    if (event.kind == kind) all.insert(all.end(), event.victims.begin(), event.victims.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<int> Plan::killed() const {
  std::vector<int> dead = victims_of(Kind::kill);
  const std::vector<int> dead_hosts = victims_of(Kind::host);
  for (int rank = 0; rank < workers; ++rank) {
    if (std::count(dead_hosts.begin(), dead_hosts.end(), host_of(rank)) > 0) dead.push_back(rank);
  }
  std::sort(dead.begin(), dead.end());
  dead.erase(std::unique(dead.begin(), dead.end()), dead.end());
  return dead;
}

double Plan::longest_s(Kind kind) const {
  double longest = 0;
  for (const Event& event : events) {
    if (event.kind == kind) longest = std::max(longest, event.length_s);
  }
  return longest;
}

std::string Plan::host_list() const {
  std::vector<std::string> list;
  for (int host = 0; host < hosts; ++host) {
    list.push_back(
        fmt::format("10.99.0.{}:{}", host + 1, workers / hosts + (host < workers % hosts ? 1 : 0)));
  }
  return fmt::format("{}", fmt::join(list, ","));
}

int Plan::host_of(int rank) const {
  const int least = workers / hosts, with_one_more = workers % hosts;
  const int before = with_one_more * (least + 1);
  return 1 + (rank < before ? rank / (least + 1) : with_one_more + (rank - before) / least);
}

double target(int rank) {
  fast::Rng rng(fast::mix_seed(99, static_cast<std::uint64_t>(rank)));
  return rng.normal();
}

int rounds_of(const Plan& plan) {
  if (plan.lenet) return 3000;
  double unnoticed_s = 0, alone_s = plan.staleness < 0 ? longest_unsuspected_s(plan) : 0;
  for (const Event& event : plan.events) {
    const bool away = event.kind == Kind::stop || is_of_links(event.kind);
    if (away) unnoticed_s += std::max(0.0, silent_s(event) - suspect_after_s);
    if (away && plan.staleness != 0)
      alone_s += std::min(event.length_s, longest_unsuspected_s(plan)) / 2;
  }
  return earliest_settled + static_cast<int>(1000 * (unnoticed_s + alone_s) / pause_ms(plan));
}

std::string write(const Plan& plan) {
  std::string line = fmt::format(
      "rule={} workers={} topology={} staleness={} codec={} arena={} hosts={} path={} weights={} "
      "data={} seed={}",
      plan.rule, plan.workers, plan.topology,
      plan.staleness < 0 ? "inf" : std::to_string(plan.staleness), plan.codec,
      plan.rotating ? "rotating" : "fixed", plan.hosts, plan.path,
      plan.devices ? "devices"
      : plan.large ? "large"
                   : "small",
      plan.lenet ? "lenet" : "parabola", plan.seed);
  if (plan.sparse) line += " entries=few";
  if (plan.learns_suspicion) line += " suspect=auto";
  if (!plan.with.empty()) line += fmt::format(" with={}", fmt::join(plan.with, ","));
  for (const Event& event : plan.events) line += fmt::format(" {}", write(event));
  return line;
}

Plan read(const std::string& line) {
  std::istringstream words(line);
  Plan plan;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      plan.events.push_back(event_from(word));
    } else {
      read_word(plan, word.substr(0, equals), word.substr(equals + 1));
    }
  }
  return plan;
}

bool is_in(const std::vector<int>& ranks, int rank) {
  return std::count(ranks.begin(), ranks.end(), rank) > 0;
}

}  // namespace chaos
