// The figures of a topology as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "fast_topology/subject.hpp"

namespace fast_topology {

/// "-" for none; after `bound` if the figure is a bound.
std::string shown(const std::optional<fast::Figure>& figure, const char* bound, int digits = 6);

/// "4" or "3 to 4".
std::string neighbors_of(const fast::Analysis& analysis);

nlohmann::ordered_json json_of(const fast::Analysis& analysis, const Subject& subject,
                               const Options& options);

/// A line for each figure, then the warnings and the matrices.
void print(const fast::Analysis& analysis, const Subject& subject, const Options& options);

}  // namespace fast_topology
