// Options of fast-train that a schedule adds to a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

struct Feature {
  std::string name;  ///< as in a schedule's "with"
  std::vector<std::string> options;
  std::vector<std::string> not_with;        ///< rules, arenas, and other features
  std::vector<std::string> only_with = {};  ///< rules, at staleness 0; empty: all
};

/// Sorted by name.
const std::vector<Feature>& features();

/// The options of all that the plan names.
std::vector<std::string> options_of_features(const Plan& plan);

/// Why the plan cannot have what it names; empty: it can.
std::string why_no_features(const Plan& plan);

}  // namespace chaos
