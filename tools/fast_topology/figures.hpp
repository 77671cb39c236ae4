// The figures of a topology as text and as JSON.
#pragma once

#include <fast/topology_tools/analysis.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "fast_topology/commands.hpp"

namespace fast_topology {

/// A topology with its mixing weights, as the subcommands look at it.
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

/// "-" for none; after `bound` if the figure is a bound.
std::string shown(const std::optional<fast::Figure>& figure, const char* bound, int digits = 6);

/// "4" or "3 to 4".
std::string neighbors_of(const fast::Analysis& analysis);

nlohmann::ordered_json json_of(const fast::Analysis& analysis, const Subject& subject,
                               const Options& options);

/// A line for each figure, then the warnings and the matrices.
void print(const fast::Analysis& analysis, const Subject& subject, const Options& options);

}  // namespace fast_topology
