#include "seats/plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/random.hpp>
#include <set>
#include <sstream>

namespace seats {
namespace {

const std::vector<std::string> names = {
    "nothing", "kill", "kill-two", "kill-spare",    "kill-the-seated", "kill-too-many",
    "pause",   "grow", "grow-two", "grow-and-kill", "grow-and-kill-it"};

template <class T>
T any_of(const std::vector<T>& all, fast::Rng& rng) {
  return all[rng.below(all.size())];
}

/// At a bounded staleness the first to finish is up to that many rounds ahead. The others make
/// these rounds alone: each goes a step towards its own target in a round.
double lonely_rounds(const Plan& plan, const std::set<int>& seats, double optimum) {
  double distance = 0;
  for (const int seat : seats) distance += std::abs(target(plan, seat) - optimum);
  return static_cast<double>(plan.staleness) * step * distance / static_cast<double>(seats.size());
}

double tolerance(const Plan& plan, const std::set<int>& seats, double optimum) {
  if (plan.rule == "push_sum" && plan.staleness != 0) return 0.8;
  if (plan.staleness < 0) return 0.5;
  return 0.01 + lonely_rounds(plan, seats, optimum);
}

}  // namespace

std::string name(Event event) { return names[static_cast<std::size_t>(event)]; }

int Plan::idle() const {
  switch (event) {
    case Event::nothing:
      return spares;
    case Event::kill:
    case Event::grow:
      return spares - 1;
    case Event::kill_two:
    case Event::kill_spare:
    case Event::kill_the_seated:
    case Event::grow_two:
    case Event::grow_and_kill:
    case Event::grow_and_kill_it:
      return spares - 2;
    case Event::kill_too_many:
      return 0;
    case Event::pause:
      return spares - 1 + 1;  // the one that has come back has no seat
  }
  return 0;
}

int Plan::growths() const {
  if (event == Event::grow_two) return 2;
  const bool grows =
      event == Event::grow || event == Event::grow_and_kill || event == Event::grow_and_kill_it;
  return grows ? 1 : 0;
}

std::string Plan::host_list() const {
  std::vector<std::string> list;
  for (int host = 0; host < hosts; ++host) {
    list.push_back(
        fmt::format("10.99.0.{}:{}", host + 1, ranks() / hosts + (host < ranks() % hosts ? 1 : 0)));
  }
  return fmt::format("{}", fmt::join(list, ","));
}

Plan draw(std::uint64_t seed, std::uint64_t index, int hosts, const std::vector<std::string>& rules,
          bool devices) {
  fast::Rng rng(fast::mix_seed(seed, index));
  Plan plan;
  plan.seed = fast::mix_seed(seed, index) % 1000;
  plan.hosts = hosts;
  plan.event = static_cast<Event>(index % names.size());
  plan.workers = 3 + static_cast<int>(rng.below(hosts > 1 ? 3 : 5));
  plan.spares = plan.event == Event::kill_too_many ? 1 : 2;
  plan.rule = any_of(rules, rng);
  const bool synchronous = plan.rule == "d2" || plan.rule == "choco";
  plan.staleness = synchronous ? 0 : any_of(std::vector<std::int64_t>{0, 0, 2, -1}, rng);
  plan.topology = any_of(std::vector<std::string>{"ring", "torus2d", "complete"}, rng);
  if (hosts > 1) plan.path = any_of(std::vector<std::string>{"two_sided", "pull"}, rng);
  const int first = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.workers)));
  const int second = (first + 1) % plan.workers;
  plan.round = 30 + static_cast<int>(rng.below(70));
  plan.delay_us = static_cast<int>(rng.below(2000));
  plan.victims = {first};
  if (plan.event == Event::kill_two || plan.event == Event::kill_too_many)
    plan.victims = {first, second};
  if (plan.event == Event::kill_spare) plan.victims = {plan.workers, first};
  if (plan.event == Event::kill_the_seated) plan.victims = {first, plan.workers};
  if (plan.event == Event::grow_and_kill_it) plan.victims = {plan.workers};
  const bool none =
      plan.event == Event::nothing || plan.event == Event::grow || plan.event == Event::grow_two;
  if (none) plan.victims.clear();
  if (devices) plan.weights = any_of(std::vector<std::string>{"staged", "mapped"}, rng);
  // Above staleness 0, such rules neither grow nor run on devices.
  const bool sums = plan.rule == "push_sum" || plan.rule == "gradient_tracking";
  if ((plan.growths() > 0 || devices) && sums) plan.staleness = 0;
  return plan;
}

std::string write(const Plan& plan) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", plan.seed,
                     static_cast<int>(plan.event), plan.workers, plan.spares, plan.hosts, plan.rule,
                     plan.topology, plan.staleness, plan.path, plan.weights, plan.round,
                     plan.delay_us, plan.victims.size(), fmt::join(plan.victims, " "));
}

Plan read(const std::string& text) {
  Plan plan;
  std::istringstream in(text);
  int event = 0;
  std::size_t victims = 0;
  in >> plan.seed >> event >> plan.workers >> plan.spares >> plan.hosts >> plan.rule >>
      plan.topology >> plan.staleness >> plan.path >> plan.weights >> plan.round >> plan.delay_us >>
      victims;
  plan.event = static_cast<Event>(event);
  plan.victims.resize(victims);
  for (int& victim : plan.victims) in >> victim;
  return plan;
}

double target(const Plan& plan, int seat) {
  fast::Rng rng(fast::mix_seed(plan.seed, static_cast<std::uint64_t>(seat)));
  const bool is_victim =
      std::find(plan.victims.begin(), plan.victims.end(), seat) != plan.victims.end();
  return rng.normal() + (is_victim || seat >= plan.workers ? 15 : 0);
}

/// Enough for the seats to come to their optimum after the last event.
int rounds_of(const Plan& plan) {
  // Those that do not wait for the suspended one go on meanwhile.
  const bool goes_on = plan.event == Event::pause && (plan.staleness != 0 || plan.hosts > 1);
  // Those that never wait average with what a lost worker has published until they suspect it.
  const bool notices = plan.event == Event::kill_too_many && plan.staleness < 0;
  // Growth takes a second or so, and longer between hosts.
  const int grows = plan.growths() * (plan.hosts > 1 ? 2500 : 1000);
  return plan.round + 400 + grows + (goes_on ? static_cast<int>(1000 * plan.pause_s()) : 0) +
         (notices ? static_cast<int>(1000 * suspect_after_s) : 0);
}

std::string judge(const Plan& plan, int status, const std::vector<Result>& results, int idle) {
  if (status < 0) return "it hung";
  if (status != 0) return fmt::format("fastrun ended with status {}", status);
  if (idle != plan.idle())
    return fmt::format("{} ranks ended without a seat, {} should have", idle, plan.idle());
  std::set<int> held;
  double optimum = 0, found = 0;
  for (const Result& one : results) {
    if (!held.insert(one.seat).second) return fmt::format("two have seat {}", one.seat);
    optimum += target(plan, one.seat);
    found += one.own;
    if (one.torn > 0) return fmt::format("worker {} saw torn values", one.seat);
    if (!plan.victims.empty() && one.longest_s > 2 * suspect_after_s + 16)
      return fmt::format("worker {} was held for {:.1f} s", one.seat, one.longest_s);
  }
  const int empty = plan.event == Event::kill_too_many ? 1 : 0;
  if (static_cast<int>(held.size()) != plan.seats() - empty)
    return fmt::format("{} seats were held in the end, {} should have been", held.size(),
                       plan.seats() - empty);
  optimum /= static_cast<double>(held.size());
  found /= static_cast<double>(held.size());
  if (std::abs(found - optimum) > tolerance(plan, held, optimum))
    return fmt::format("the workers stand at {:.4f}, their optimum is {:.4f}", found, optimum);
  for (const Result& one : results) {
    if (one.lost != empty)
      return fmt::format("worker {} lists {} as lost, {} are", one.seat, one.lost, empty);
    if (plan.hosts == 1 && std::abs(one.mean - found) > 1e-9)
      return fmt::format("worker {} has a mean model of {}, that of all is {}", one.seat, one.mean,
                         found);
  }
  return "";
}

}  // namespace seats
