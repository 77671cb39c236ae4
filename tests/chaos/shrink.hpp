// The smallest schedule that still fails.
#pragma once

#include <functional>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

/// Plans that are simpler than this one in one respect each, the simplest first: fewer events,
/// fewer hosts and workers, then plain settings. All of them run.
std::vector<Plan> simpler(const Plan& plan);

/// The simplest plan found that fails. Tries `most` plans.
Plan shrink(Plan failing, const std::function<bool(const Plan&)>& fails, int most);

}  // namespace chaos
