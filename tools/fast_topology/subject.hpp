// A topology with its mixing weights, as the subcommands look at it.
#pragma once

#include <fast/topology/load.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <string>
#include <vector>

#include "fast_topology/options.hpp"

namespace fast_topology {

struct Subject {
  fast::Schedule schedule;
  fast::WeightRule rule = fast::WeightRule::automatic;
  bool lazy = false;
};

/// Throws fast::Error for a name or weights that do not fit.
Subject subject_of(const std::string& name, const Options& options);

/// Row by row.
std::vector<double> matrix_of(const Subject& subject, std::int64_t round);

/// What a user should know before a choice.
std::vector<std::string> warnings_of(const Subject& subject, const fast::Analysis& analysis);

}  // namespace fast_topology
