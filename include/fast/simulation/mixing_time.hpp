// How well a schedule mixes, for plans. Component simulation.
#pragma once

#include <fast/topology/schedule.hpp>
#include <fast/topology/weight_rule.hpp>

#include <optional>

namespace fast::simulation {

/// Values of neighbors enter so many rounds late; 0 is synchronous.
struct MixingDelay {
  int rounds = 0;
};

/// The effective number of neighbors of Vogels, Hendrikx & Jaggi 2022 (arXiv 2206.03093): in the
/// random walk x ← W(√γ x + ξ) with normal noise ξ, the variance of a worker alone, 1/(1-γ),
/// divided by the mean variance of the workers. It is 1 without mixing and N for exact averages.
/// With a delay, both variances are divided by the square of what a constant drift moves a worker.
/// The number is the mean over the workers and the rounds of a period in which values start. It is
/// exact for static topologies that look alike from every worker and for few workers; else it comes
/// from samples, drawn by a fixed seed. Throws Error(argument) unless 0 < γ < 1, and
/// Error(topology) when the rule does not fit.
double effective_neighbors(const Schedule& schedule, double gamma, MixingDelay delay = {},
                           WeightRule rule = WeightRule::automatic, bool lazy = false);

/// Rounds until a disagreement has shrunk to 1/1000. It is that of analyze() without delay. With a
/// delay, it follows from the rate at which the spread of random values shrinks in the end, as far
/// as a simulation of some seconds sees it. None when it does not shrink.
std::optional<double> rounds_to_consensus(const Schedule& schedule, MixingDelay delay = {},
                                          WeightRule rule = WeightRule::automatic,
                                          bool lazy = false);

}  // namespace fast::simulation
