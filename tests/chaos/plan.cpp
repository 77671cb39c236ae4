#include "chaos/plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/algorithm/rules.hpp>
#include <fast/core/random.hpp>
#include <sstream>

namespace chaos {
namespace {

const std::vector<std::string> names = {"nothing",     "kill", "kill-two",
                                        "stop",        "slow", "kill-at-start",
                                        "kill-at-end", "cut",  "cut-and-kill"};

template <class T>
T one_of(const std::vector<T>& all, fast::Rng& rng) {
  return all[rng.below(all.size())];
}

}  // namespace

std::vector<int> Plan::killed() const {
  if (kind == Kind::kill || kind == Kind::kill_two) return victims;
  if (kind == Kind::cut_and_kill) return {victims[1]};
  return {};
}

std::string Plan::host_list() const {
  std::vector<std::string> list;
  for (int host = 0; host < hosts; ++host) {
    list.push_back(
        fmt::format("10.99.0.{}:{}", host + 1, workers / hosts + (host < workers % hosts ? 1 : 0)));
  }
  return fmt::format("{}", fmt::join(list, ","));
}

std::string name(Kind kind) { return names[static_cast<std::size_t>(kind)]; }

double target(int rank) {
  fast::Rng rng(fast::mix_seed(99, static_cast<std::uint64_t>(rank)));
  return rng.normal();
}

int rounds_of(const Plan& plan) {
  if (plan.lenet) return 3000;
  const bool away = plan.kind == Kind::stop || plan.cuts();
  const double unnoticed_s = away ? std::max(0.0, plan.pause_s - suspect_after_s) : 0;
  const double noticing_s = plan.staleness < 0 ? suspect_after_s : 0;
  return 250 + static_cast<int>(1000 * (unnoticed_s + noticing_s) / pause_ms(plan));
}

Plan draw(std::uint64_t seed, std::uint64_t index) {
  fast::Rng rng(fast::mix_seed(seed, index));
  Plan plan;
  const std::vector<Kind> kinds = {Kind::kill, Kind::kill,          Kind::kill_two,    Kind::stop,
                                   Kind::stop, Kind::kill_at_start, Kind::kill_at_end, Kind::slow};
  plan.kind = kinds[index % kinds.size()];
  plan.workers = 3 + static_cast<int>(rng.below(7));
  plan.topology = one_of<std::string>({"ring", "torus2d", "one_peer_exponential"}, rng);
  plan.algorithm = one_of<std::string>({"awc", "atc"}, rng);
  plan.staleness = one_of<std::int64_t>({0, 0, 2, -1}, rng);
  plan.victims = {static_cast<int>(rng.below(3) == 0 ? 0 : rng.below(plan.workers))};
  if (plan.kind == Kind::kill_two) {
    const int step = 1 + static_cast<int>(rng.below(plan.workers - 1));
    plan.victims.push_back((plan.victims[0] + step) % plan.workers);
  }
  plan.round = 5 + static_cast<int>(rng.below(80));
  plan.delay_us = static_cast<int>(rng.below(4000));
  plan.pause_s = rng.uniform(0.2, 2);
  return plan;
}

Plan draw_on_hosts(int hosts, std::uint64_t seed, std::uint64_t index) {
  fast::Rng rng(fast::mix_seed(seed, index));
  Plan plan;
  std::vector<Kind> kinds = {Kind::stop, Kind::cut, Kind::kill};
  if (hosts > 2) kinds = {Kind::cut, Kind::cut_and_kill, Kind::kill};
  plan.kind = kinds[index % kinds.size()];
  plan.path = index / kinds.size() % 2 == 0 ? "pull" : "two_sided";
  plan.hosts = hosts;
  plan.workers = hosts + static_cast<int>(rng.below(4));
  plan.topology = one_of<std::string>({"ring", "torus2d", "one_peer_exponential"}, rng);
  plan.algorithm = one_of<std::string>({"awc", "atc"}, rng);
  const std::vector<std::int64_t> bounds = {0, 2, 0, -1};
  plan.staleness = bounds[(index / 6 + index % 3 / 2) % bounds.size()];
  plan.victims = {static_cast<int>(rng.below(plan.workers))};
  if (plan.kind == Kind::cut_and_kill) {
    plan.victims.push_back(static_cast<int>(rng.below(plan.workers)));
  }
  plan.round = 5 + static_cast<int>(rng.below(80));
  plan.delay_us = static_cast<int>(rng.below(4000));
  plan.pause_s = rng.uniform(0.8, 2.2);
  plan.one_link = hosts > 2 && rng.below(2) == 0;
  plan.large = rng.below(2) == 0;
  return plan;
}

std::vector<std::string> all_rules() {
  return {"awc",       "atc",   "local",    "gradient_tracking", "d2", "quasi_global_momentum",
          "decentlam", "choco", "push_sum", "event_triggered"};
}

void choose_rule(Plan& plan, const std::vector<std::string>& rules, std::uint64_t seed) {
  fast::Rng rng(fast::mix_seed(seed, 7));
  plan.algorithm = one_of(rules, rng);
  const fast::algorithm::Declaration rule = fast::algorithm::by_name(plan.algorithm).declaration();
  // Stale decentlam diverges at this step even when nothing happens.
  if (!rule.why_synchronous.empty() || plan.algorithm == "decentlam") plan.staleness = 0;
  // Devices have no running sums.
  if (plan.devices && rule.delivery == fast::algorithm::Delivery::summed) plan.staleness = 0;
  const bool sums = rule.delivery == fast::algorithm::Delivery::summed && plan.staleness != 0;
  const bool symmetric = rule.mixing == fast::algorithm::Mixing::symmetric;
  if (plan.topology == "one_peer_exponential" &&
      (rule.needs_static_topology || sums || symmetric)) {
    plan.topology = "ring";
  }
}

void train_lenet(Plan& plan, std::uint64_t seed) {
  plan.lenet = true;
  plan.workers = 3 + plan.workers % 2;
  for (int& victim : plan.victims) victim %= plan.workers;
  if (plan.victims.size() == 2 && plan.victims[0] == plan.victims[1]) {
    plan.victims[1] = (plan.victims[0] + 1) % plan.workers;
  }
  plan.round *= 12;
  plan.seed = seed;
}

std::string write(const Plan& plan) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(plan.kind),
                     plan.workers, plan.topology, plan.algorithm, plan.staleness, plan.round,
                     plan.delay_us, plan.pause_s, plan.hosts, plan.path,
                     static_cast<int>(plan.large), static_cast<int>(plan.lenet),
                     static_cast<int>(plan.devices), plan.seed, fmt::join(plan.victims, " "));
}

Plan read(const std::string& line) {
  std::istringstream words(line);
  Plan plan;
  int kind = 0;
  words >> kind >> plan.workers >> plan.topology >> plan.algorithm >> plan.staleness >>
      plan.round >> plan.delay_us >> plan.pause_s >> plan.hosts >> plan.path >> plan.large >>
      plan.lenet >> plan.devices >> plan.seed;
  plan.kind = static_cast<Kind>(kind);
  for (int victim = 0; words >> victim;) plan.victims.push_back(victim);
  return plan;
}

}  // namespace chaos
