// Rules with an outer step, and sparta, together with what else a Worker can do. Each throws
// std::runtime_error when something is wrong.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void outer_rules_keep_the_mean_whatever_is_combined(const Group& group);

}  // namespace fast::testing
