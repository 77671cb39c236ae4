#include "chaos/verdict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/topology/load.hpp>
#include <fast/topology/parts.hpp>
#include <fstream>

namespace chaos {
namespace {

double tolerance(const Plan& plan) {
  // Stale push-sum counts the steps of workers that read late for less.
  if (plan.algorithm == "push_sum" && plan.staleness != 0) return 0.5;
  // One peer a round and stale reads are not symmetric at every moment.
  // Workers that never wait end at different times, the last of them alone.
  if (plan.topology == "one_peer_exponential" || plan.staleness < 0) return 0.25;
  return plan.staleness == 0 ? 0.02 : 0.1;
}

/// What leaves with a worker is made good among the others, and one that comes back brings neither
/// more nor less than its own: there is a mass of 1 for each worker.
std::string of_mass(const Plan& plan, const std::vector<Result>& results, double workers) {
  double mass = 0;
  for (const Result& one : results) mass += one.mass;
  if (plan.algorithm != "push_sum" || plan.staleness != 0 || std::abs(mass - workers) < 1e-9)
    return "";
  return fmt::format("{} workers have a mass of {}", workers, mass);
}

/// Directed edges without some workers keep no mean: whoever reads nobody goes where it would
/// alone.
std::string between_targets(const std::vector<Result>& results) {
  double lowest = HUGE_VAL, highest = -HUGE_VAL;
  for (const Result& one : results) {
    lowest = std::min(lowest, target(one.rank));
    highest = std::max(highest, target(one.rank));
  }
  for (const Result& one : results) {
    if (one.own < lowest - 0.02 || one.own > highest + 0.02)
      return fmt::format("worker {} stands at {:.4f}, outside of [{:.4f}, {:.4f}]", one.rank,
                         one.own, lowest, highest);
  }
  return "";
}

/// Of those left, and when deaths have cut the topology, of a worker's part. On one host: elsewhere
/// a survivor that has left is not there to be read.
std::string of_mean_models(const Plan& plan, const std::vector<Result>& results) {
  const auto schedule = fast::topology_from(plan.topology).make(plan.workers);
  for (const auto& part : fast::living_parts(schedule, plan.killed())) {
    double mean = 0;
    for (const Result& one : results) {
      if (std::binary_search(part.begin(), part.end(), one.rank))
        mean += one.own / static_cast<double>(part.size());
    }
    for (const Result& one : results) {
      const bool member = std::binary_search(part.begin(), part.end(), one.rank) &&
                          one.lost == static_cast<int>(plan.killed().size());
      if (member && std::abs(one.mean - mean) > 1e-9)
        return fmt::format("worker {} has a mean model of {}, that of {} is {}", one.rank, one.mean,
                           fast::describe_parts({part}), mean);
    }
  }
  return "";
}

/// Survivors lose one point at most to the mean of runs that nothing happened to.
std::string against_undisturbed(const Plan& plan, const std::vector<Result>& results,
                                double undisturbed) {
  constexpr double point = 0.01;
  for (const Result& one : results) {
    const double found = plan.kind == Kind::kill_at_end ? one.own : one.mean;
    if (found < undisturbed - point)
      return fmt::format("worker {} tells {:.2f} % right, {:.2f} % when nothing happens", one.rank,
                         100 * found, 100 * undisturbed);
  }
  return "";
}

}  // namespace

std::vector<Result> results_in(const std::string& directory, int workers) {
  std::vector<Result> results;
  for (int rank = 0; rank < workers; ++rank) {
    std::ifstream in(fmt::format("{}/result-{}", directory, rank));
    Result one{};
    one.rank = rank;
    if (in >> one.mean >> one.own >> one.torn >> one.longest_s >> one.lost >> one.rejoined >>
        one.mass)
      results.push_back(one);
  }
  return results;
}

std::string judge(const Plan& plan, std::optional<int> status, const std::vector<Result>& results,
                  double undisturbed) {
  if (!status) return "it hung";
  const bool dies = !plan.killed().empty();
  if (plan.kind == Kind::kill_at_start) {
    return *status != 0 && results.empty() ? "" : "it went on without a worker that never began";
  }
  if (*status != 0) return fmt::format("fastrun ended with status {}", *status);
  const auto expected = static_cast<std::size_t>(plan.workers) - plan.killed().size() -
                        (plan.kind == Kind::kill_at_end ? 1 : 0);
  if (results.size() != expected)
    return fmt::format("{} workers came to an end, {} should have", results.size(), expected);
  if (plan.lenet) return against_undisturbed(plan, results, undisturbed);
  // One that came back when the others had come to their end made its last rounds alone.
  const auto any = [&](int Result::*count) {
    return std::any_of(results.begin(), results.end(),
                       [count](const Result& one) { return one.*count > 0; });
  };
  const bool left_out = plan.kind == Kind::stop && plan.pause_s > suspect_after_s + 0.2;
  const bool too_late = left_out && (any(&Result::lost) || !any(&Result::rejoined));
  const auto counted = static_cast<double>(results.size() - (too_late ? 1 : 0));
  double optimum = 0, found = 0;
  for (const Result& one : results) {
    if (one.torn > 0) return fmt::format("worker {} saw {} torn values", one.rank, one.torn);
    if (!too_late || one.rank != plan.victims[0]) {
      optimum += target(one.rank) / counted;
      found += one.own / counted;
    }
    if (dies && one.longest_s > 2 * suspect_after_s + 2)
      return fmt::format("worker {} was held for {:.1f} s", one.rank, one.longest_s);
  }
  if (plan.kind == Kind::kill_at_end) return "";
  if (!too_late) {
    const std::string wrong = of_mass(plan, results, static_cast<double>(results.size()));
    if (!wrong.empty()) return wrong;
  }
  if (dies && plan.hosts == 1) {
    if (const std::string wrong = of_mean_models(plan, results); !wrong.empty()) return wrong;
  }
  if (dies && plan.topology == "one_peer_exponential") return between_targets(results);
  if (std::abs(found - optimum) > tolerance(plan))
    return fmt::format("the survivors stand at {:.4f}, their optimum is {:.4f}", found, optimum);
  return "";
}

}  // namespace chaos
