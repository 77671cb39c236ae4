#include "worker/start/robust_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/mixing/check.hpp>

namespace fast::worker {
namespace {

using algorithm::MixingRequirement;

/// Why differences between messages are no differences between weights, or must not be limited.
/// Empty: they may be.
std::string_view why_not(const algorithm::RuleTraits& rule) {
  if (rule.topology.scope == algorithm::Scope::nobody) return "it reads no neighbors";
  if (rule.topology.scope == algorithm::Scope::everybody || rule.timing.average_every > 0)
    return "an average over all workers comes as a sum, in which no worker can be told apart";
  if (rule.topology.mixing == MixingRequirement::matching)
    return "a worker reads one other in a round, and has nothing to compare it with";
  if (rule.topology.divides() || rule.messages.scalars > 0)
    return "its messages are shares of a sum, of which nothing may be left out";
  if (rule.messages.selection.selects())
    return "its messages are a part of the weights, whose distances tell little of the whole";
  if (rule.topology.mixing == MixingRequirement::unit || rule.messages.vectors > 1 ||
      rule.messages.weights_apart || rule.messages.sparsity.bounded())
    return "its messages are no weights, or not weights alone";
  if (rule.memory.vectors > 0)
    return "what it keeps from round to round would follow the limited values";
  return {};
}

/// Of the workers that read others.
struct Degrees {
  int least, most, of_least;  ///< the last: the worker
};

Degrees degrees_of(const Schedule& schedule) {
  Degrees found{schedule.workers(), 0, 0};
  const std::int64_t rounds = schedule.period_or(looked_at_of_endless);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const Topology topology = schedule.at(round);
    for (int worker = 0; worker < topology.workers(); ++worker) {
      const int degree = topology.in_degree(worker);
      if (degree == 0) continue;
      found.most = std::max(found.most, degree);
      if (degree < found.least) found.of_least = worker;
      found.least = std::min(found.least, degree);
    }
  }
  return found;
}

}  // namespace

void check_for_robust(const WorkerOptions& options) {
  if (options.robust == Robust::none) return;
  const algorithm::RuleTraits& rule = options.algorithm.traits();
  const std::string_view reason = why_not(rule);
  require(reason.empty(), ErrorKind::argument,
          "Worker: robust averaging with algorithm {}: {}; take awc, atc or local, or robust none",
          rule.name, reason);
  require(
      !options.site, ErrorKind::argument,
      "Worker: robust averaging with a site: averages between sites are plain means, by which a "
      "bad worker reaches all; take robust none");
}

std::string robust_notice(const Schedule& schedule, Robust robust) {
  if (robust == Robust::none || schedule.workers() == 1) return {};
  const Degrees degrees = degrees_of(schedule);
  require(degrees.most > 1, ErrorKind::topology,
          "Worker: robust averaging on {}, where no worker reads two neighbors in a round, so that "
          "it has nothing to compare one with; take a topology of more neighbors, such as torus2d, "
          "or robust none",
          schedule.name());
  if (degrees.least < 2)
    return fmt::format(
        "robust averaging on {}: worker {} reads one neighbor in some round, which is not limited: "
        "nothing tells whether it is bad",
        schedule.name(), degrees.of_least);
  if (degrees.least > 2) return {};
  if (robust == Robust::clip)
    return fmt::format(
        "robust averaging on {}: of two neighbors, the further one counts as if it were as close "
        "as the other; a topology of more neighbors averages more",
        schedule.name());
  return fmt::format(
      "robust averaging on {}: the trimmed mean of a worker and two neighbors is the median of the "
      "three values; robust clip, or a topology of more neighbors, averages more",
      schedule.name());
}

}  // namespace fast::worker
