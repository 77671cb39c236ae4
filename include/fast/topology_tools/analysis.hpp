// What a topology promises, in figures: for choosing one. Component topology_tools.
#pragma once

#include <fast/mixing/check.hpp>
#include <fast/mixing/weights.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fast {

/// A figure, or a bound of it where it could not be found in reasonable time.
struct Figure {
  double value = 0;
  bool is_bound = false;
};

struct Analysis {
  std::string name;
  int workers = 0;
  std::int64_t period = 1;  ///< 0: never repeats
  int least_degree = 0;     ///< neighbors read in one round, over workers and rounds
  int most_degree = 0;
  bool directed = false;
  MixingCheck check;
  std::optional<Figure> gap;  ///< as in Spectrum; none of an endless schedule. A bound: at most
  std::optional<Figure> smallest_eigenvalue;  ///< of a symmetric static W. A bound: at most
  /// The largest number of hops between two workers in the graph of all edges of a period. It is
  /// empty when that graph is not connected. A bound: at least.
  std::optional<Figure> diameter;
  /// Rounds until a disagreement has shrunk to 1/1000: from the gap, for the worst start. Where
  /// there is no gap or it is not above 0, measured from a random start (is_bound: at least). None
  /// when it never does.
  std::optional<Figure> rounds_to_consensus;
  bool rounds_are_measured = false;
  double average_edges = 0;  ///< values read by all workers in a round, divided by workers
};

/// Analyzes a schedule. Results are exact up to some hundred workers (dense matrices), and in
/// closed form for stencils on a torus. For other symmetric graphs Spectra computes them with
/// shift-invert. They are bounds where that does not converge. 10⁵ workers take seconds.
Analysis analyze(const Schedule& schedule, WeightRule rule = WeightRule::automatic,
                 bool lazy = false);

/// The consensus distance after 0, 1, ..., `rounds` rounds from seeded normal values, divided by
/// that at the start.
std::vector<double> consensus_curve(const Schedule& schedule, int rounds,
                                    WeightRule rule = WeightRule::automatic, bool lazy = false,
                                    std::uint64_t seed = 1);

/// Returns weights that make the gap of an undirected graph (nearly) largest, never worse than
/// Metropolis. The method is the projected subgradient method of Boyd, Diaconis & Xiao 2004,
/// "Fastest mixing Markov chain on a graph", section 4. Throws Error(topology) on directed graphs
/// and above 200 workers.
Topology fastest_mixing(const Topology& topology);

}  // namespace fast
