#include "chaos/verdict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/topology/load.hpp>
#include <fast/topology/topology.hpp>
#include <fstream>
#include <sstream>
#include <utility>

#include "chaos/bounds.hpp"

namespace chaos {
namespace {

constexpr double own_target = 1e-3, hull_slack = 0.02, coded_slack = 0.05;

bool any(const std::vector<Result>& results, int Result::*count) {
  return std::any_of(results.begin(), results.end(),
                     [count](const Result& one) { return one.*count > 0; });
}

/// What leaves with a worker is made good among the others, and one that comes back brings neither
/// more nor less than its own: there is a mass of 1 for each worker. The two ends of a link that
/// was cut start anew in different rounds, and mass is on its way between them: the total changes,
/// which scales all steps alike.
std::string of_mass(const Plan& plan, const std::vector<Result>& results) {
  double mass = 0;
  for (const Result& one : results) mass += one.mass;
  const auto workers = static_cast<double>(results.size());
  if (plan.rule != "push_sum" || plan.staleness != 0) return "";
  const bool cuts = plan.has(Kind::cut);
  if (cuts ? mass > workers / 2 && mass < 2 * workers : std::abs(mass - workers) < 1e-9) return "";
  return fmt::format("{} workers have a mass of {}", workers, mass);
}

std::pair<double, double> range_of_targets(const std::vector<Result>& results) {
  double lowest = HUGE_VAL, highest = -HUGE_VAL;
  for (const Result& one : results) {
    lowest = std::min(lowest, target(one.rank));
    highest = std::max(highest, target(one.rank));
  }
  return {lowest, highest};
}

/// Directed edges without some workers keep no mean: whoever reads nobody goes where it would
/// alone.
std::string between_targets(const Plan& plan, const std::vector<Result>& results) {
  const auto [lowest, highest] = range_of_targets(results);
  const double slack = plan.codec == "identity" ? hull_slack : coded_slack;
  for (const Result& one : results) {
    if (!(one.own >= lowest - slack && one.own <= highest + slack))
      return fmt::format("worker {} stands at {:.4f}, outside of [{:.4f}, {:.4f}]", one.rank,
                         one.own, lowest, highest);
  }
  return "";
}

/// Of those left, and when deaths have cut the topology, of a worker's part. On one host: elsewhere
/// a survivor that has left is not there to be read.
std::string of_mean_models(const Plan& plan, const std::vector<Result>& results,
                           const std::vector<int>& dead) {
  const auto schedule = fast::topology_from(plan.topology).make(plan.workers);
  for (const auto& part : fast::living_parts(schedule, dead)) {
    double mean = 0;
    for (const Result& one : results) {
      if (std::binary_search(part.begin(), part.end(), one.rank))
        mean += one.own / static_cast<double>(part.size());
    }
    for (const Result& one : results) {
      const bool member = std::binary_search(part.begin(), part.end(), one.rank) &&
                          one.lost == static_cast<int>(dead.size());
      if (member && std::abs(one.mean - mean) > 1e-9)
        return fmt::format("worker {} has a mean model of {}, that of {} is {}", one.rank, one.mean,
                           fast::describe_parts({part}), mean);
    }
  }
  return "";
}

/// MembershipView lose one point at most to the mean of runs that nothing happened to.
std::string against_undisturbed(const Plan& plan, const std::vector<Result>& results,
                                double undisturbed) {
  constexpr double point = 0.01;
  for (const Result& one : results) {
    const double found = plan.has(Kind::end) ? one.own : one.mean;
    if (found < undisturbed - point)
      return fmt::format("worker {} tells {:.2f} % right, {:.2f} % when nothing happens", one.rank,
                         100 * found, 100 * undisturbed);
  }
  return "";
}

/// Those that were stopped for so long that others have left them out, and that may have come back
/// when the others had come to their end: they made their last rounds alone.
std::vector<int> too_late(const Plan& plan, const std::vector<Result>& results) {
  std::vector<int> late;
  for (const Event& event : plan.events) {
    const bool left_out = event.kind == Kind::stop && event.length_s > suspect_after_s + 0.2;
    const bool all = static_cast<int>(event.victims.size()) == plan.workers;
    if (left_out && !all) late.insert(late.end(), event.victims.begin(), event.victims.end());
  }
  const auto expected = static_cast<int>(plan.killed().size());
  const bool some_were_lost = std::any_of(results.begin(), results.end(),
                                          [&](const Result& one) { return one.lost > expected; });
  if (some_were_lost || !any(results, &Result::rejoined)) return late;
  return {};
}

struct Distance {
  double found = 0, optimum = 0;
  double value() const { return std::abs(found - optimum); }
};

/// Of the mean of the weights from the mean of the targets, of all but `without`.
Distance distance(const std::vector<Result>& results, const std::vector<int>& without) {
  Distance distance;
  double count = 0;
  for (const Result& one : results) {
    if (is_in(without, one.rank)) continue;
    distance.optimum += target(one.rank);
    distance.found += one.own;
    ++count;
  }
  return {distance.found / count, distance.optimum / count};
}

std::string own_targets(const std::vector<Result>& results) {
  for (const Result& one : results) {
    if (!(std::abs(one.own - target(one.rank)) < own_target))
      return fmt::format("worker {} stands at {:.4f}, its target is {:.4f}", one.rank, one.own,
                         target(one.rank));
  }
  return "";
}

/// Whether survivors wait for a worker that is gone no longer than it takes to notice.
std::string of_waits(const Plan& plan, const std::vector<Result>& results) {
  const bool others = std::any_of(plan.events.begin(), plan.events.end(), [](const Event& event) {
    return event.kind != Kind::kill && event.kind != Kind::host;
  });
  if (plan.killed().empty() || others) return "";
  for (const Result& one : results) {
    if (one.longest_s > 2 * longest_unsuspected_s(plan) + 2)
      return fmt::format("worker {} was held for {:.1f} s", one.rank, one.longest_s);
  }
  return "";
}

/// A worker that rejoins drops its own weights: the mean moves, by the width of the targets at
/// most, and comes back by `step` a round.
double moved_by_rejoining(const std::vector<Result>& results) {
  const auto [lowest, highest] = range_of_targets(results);
  double moved = 0;
  for (const Result& one : results) {
    if (one.rejoined > 0)
      moved = std::max(moved, (highest - lowest) * std::pow(1 - step, one.since_rejoined));
  }
  return moved;
}

Verdict of_weights(const Plan& plan, const std::vector<Result>& results,
                   const std::vector<int>& dead) {
  const std::vector<int> late = too_late(plan, results);
  if (plan.rule == "none") return Verdict::of(own_targets(results));
  if (plan.rule == "push_sum" && may_stop_reaching(plan))
    return Verdict::of(between_targets(plan, results));
  if (late.empty()) {
    const std::string wrong = of_mass(plan, results);
    if (!wrong.empty()) return Verdict::of(wrong);
  }
  const bool one_host = plan.hosts == 1 && !bound_of(plan.rule).everybody;
  if (!dead.empty() && one_host && late.empty()) {
    const std::string wrong = of_mean_models(plan, results, dead);
    if (!wrong.empty()) return Verdict::of(wrong);
  }
  if (!dead.empty() && !keeps_mean_without_some(plan))
    return Verdict::of(between_targets(plan, results));
  const Distance all = distance(results, {});
  const bool some_left = late.size() < results.size();
  const Distance timely = late.empty() || !some_left ? all : distance(results, late);
  const Distance best = timely.value() < all.value() ? timely : all;
  Verdict verdict;
  verdict.distance = best.value();
  if (!(verdict.distance <= tolerance(plan) + moved_by_rejoining(results))) {
    verdict.fault = Fault::other;
    verdict.wrong = fmt::format("the survivors stand at {:.4f}, their optimum is {:.4f}",
                                best.found, best.optimum);
  }
  return verdict;
}

double held_s(const Plan& plan, const std::vector<Result>& results) {
  const std::vector<int> stopped = plan.victims_of(Kind::stop);
  double longest = 0;
  for (const Result& one : results) {
    if (!is_in(stopped, one.rank)) longest = std::max(longest, one.longest_s);
  }
  return longest;
}

Verdict judge_results(const Plan& plan, const Ending& ending, const std::vector<int>& dead,
                      double undisturbed) {
  const auto& results = ending.results;
  if (*ending.status != 0)
    return Verdict::of(fmt::format("fastrun ended with status {}", *ending.status));
  const std::size_t expected =
      static_cast<std::size_t>(plan.workers) - dead.size() - plan.victims_of(Kind::end).size();
  if (results.size() != expected)
    return Verdict::of(
        fmt::format("{} workers came to an end, {} should have", results.size(), expected));
  for (const Result& one : results) {
    if (one.torn > 0)
      return Verdict::of(fmt::format("worker {} saw {} torn values", one.rank, one.torn),
                         Fault::torn);
  }
  if (plan.lenet) return Verdict::of(against_undisturbed(plan, results, undisturbed));
  const std::string wrong = of_waits(plan, results);
  if (!wrong.empty()) return Verdict::of(wrong);
  return plan.has(Kind::end) ? Verdict{} : of_weights(plan, results, dead);
}

}  // namespace

std::vector<Result> results_in(const std::string& directory, int workers) {
  std::vector<Result> results;
  for (int rank = 0; rank < workers; ++rank) {
    std::ifstream in(fmt::format("{}/result-{}", directory, rank));
    Result one{};
    one.rank = rank;
    if (in >> one.mean >> one.own >> one.torn >> one.longest_s >> one.lost >> one.rejoined >>
        one.since_rejoined >> one.mass)
      results.push_back(one);
  }
  return results;
}

std::string of_error(const Ending& ending, const std::string& text) {
  if (!ending.status) return "it hung";
  if (*ending.status == 0) return "it ended well";
  std::istringstream log(ending.log);
  int messages = 0;
  bool found = text.empty();
  for (std::string line; std::getline(log, line);) {
    const std::size_t at = line.find("error: ");
    messages += at == std::string::npos ? 0 : 1;
    found = found || (at != std::string::npos && line.find(text, at) != std::string::npos);
  }
  if (messages != 1) return fmt::format("{} messages of an error instead of one", messages);
  return found ? "" : "no message with \"" + text + "\"";
}

Verdict judge(const Plan& plan, const Ending& ending, double undisturbed) {
  if (!ending.status) return Verdict::of("it hung", Fault::hang);
  if (plan.has(Kind::start)) {
    const bool ended = *ending.status != 0 && ending.results.empty();
    return Verdict::of(ended ? "" : "it went on without a worker that never began");
  }
  std::vector<int> dead = plan.killed();
  const bool needs_all = bound_of(plan.rule).everybody;
  if (plan.has(Kind::memory)) {
    // The worker fails by an exception, which ends the run; or it dies; or it needs no more memory.
    if (*ending.status != 0) return Verdict::of(of_error(ending));
    if (ending.results.size() < static_cast<std::size_t>(plan.workers))
      dead = plan.victims_of(Kind::memory);
  }
  if (needs_all && !dead.empty()) return Verdict::of(of_error(ending));
  Verdict verdict = judge_results(plan, ending, dead, undisturbed);
  verdict.held_s = held_s(plan, ending.results);
  return verdict;
}

}  // namespace chaos
