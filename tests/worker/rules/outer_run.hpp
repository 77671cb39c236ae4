// Runs of rules with local steps on threads: each worker steps to a goal of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <string>
#include <vector>

#include "worker/constant.hpp"

namespace fast::testing {

using OuterEnds = std::vector<std::vector<double>>;

inline WorkerOptions outer_options(const algorithm::Rule& rule, const char* codec = "identity") {
  WorkerOptions options = quick();
  options.algorithm = rule;
  options.codec = codec::by_name(codec);
  return options;
}

inline double goal_of(int rank) {
  return Rng(mix_seed(5, static_cast<std::uint64_t>(rank))).normal();
}

struct OuterRun {
  int workers = 4;
  TopologyRule topology = stencil::complete();
  WorkerOptions options{};
  int rounds = 60;
  double rate = 0.05;
  bool starts_equal = false;
  std::size_t elements = 700;
  int leaver = -1;  ///< leaves half way
};

/// Each worker steps to its goal_of in all elements; returns where they end, by worker.
inline OuterEnds outer_ends(const OuterRun& run) {
  OuterEnds ends(static_cast<std::size_t>(run.workers));
  local::run(run.workers, [&](const Group& group) {
    const int me = group.rank();
    std::vector<double>& x = ends[static_cast<std::size_t>(me)];
    Rng rng(mix_seed(9, run.starts_equal ? 0 : static_cast<std::uint64_t>(me)));
    for (std::size_t e = 0; e < run.elements; ++e) x.push_back(rng.normal());
    Worker worker(group, run.topology, {view_of("x", std::span(x))}, run.options);
    for (int t = 0; t < run.rounds; ++t) {
      if (me == run.leaver && t == run.rounds / 2 + 2) return worker.leave();
      worker.step([&] {
        for (double& value : x) value -= run.rate * (value - goal_of(me));
      });
    }
  });
  return ends;
}

inline double largest_difference(const OuterEnds& a, const OuterEnds& b) {
  double most = 0;
  for (std::size_t w = 0; w < a.size(); ++w) {
    for (std::size_t e = 0; e < a[w].size(); ++e)
      most = std::max(most, std::abs(a[w][e] - b[w][e]));
  }
  return most;
}

/// Between workers of the list.
inline double outer_disagreement(const OuterEnds& ends, const std::vector<int>& workers) {
  double most = 0;
  const std::vector<double>& first = ends[static_cast<std::size_t>(workers.front())];
  for (const int worker : workers) {
    const std::vector<double>& x = ends[static_cast<std::size_t>(worker)];
    for (std::size_t e = 0; e < x.size(); ++e) most = std::max(most, std::abs(x[e] - first[e]));
  }
  return most;
}

}  // namespace fast::testing
