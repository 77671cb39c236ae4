#include "chaos/plan.hpp"

#include <fmt/ranges.h>

#include <fast/core/random.hpp>
#include <sstream>

namespace chaos {
namespace {

const std::vector<std::string> names = {"nothing", "kill",          "kill-two",   "stop",
                                        "slow",    "kill-at-start", "kill-at-end"};

template <class T>
T one_of(const std::vector<T>& all, fast::Rng& rng) {
  return all[rng.below(all.size())];
}

}  // namespace

std::string name(Kind kind) { return names[static_cast<std::size_t>(kind)]; }

double target(int rank) {
  fast::Rng rng(fast::mix_seed(99, static_cast<std::uint64_t>(rank)));
  return rng.normal();
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
  plan.pause_s = rng.uniform(0.2, 3);
  return plan;
}

std::string write(const Plan& plan) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", static_cast<int>(plan.kind), plan.workers,
                     plan.topology, plan.algorithm, plan.staleness, plan.round, plan.delay_us,
                     plan.pause_s, fmt::join(plan.victims, " "));
}

Plan read(const std::string& line) {
  std::istringstream words(line);
  Plan plan;
  int kind = 0;
  words >> kind >> plan.workers >> plan.topology >> plan.algorithm >> plan.staleness >>
      plan.round >> plan.delay_us >> plan.pause_s;
  plan.kind = static_cast<Kind>(kind);
  for (int victim = 0; words >> victim;) plan.victims.push_back(victim);
  return plan;
}

}  // namespace chaos
