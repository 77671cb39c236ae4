// The registry of rules: each has a row at the end of its file, and its name here and in names.cpp.
#pragma once

#include "algorithm/parameters.hpp"

namespace fast::algorithm {

struct RuleEntry {
  /// Reads the rule's options by their names. Throws Error(argument) on values out of range.
  Rule (*make)(ParameterReader& reader);
};

namespace entries {
extern const RuleEntry none, awc, atc, local, gossip_pga, gradient_tracking, d2,
    quasi_global_momentum, decentlam, choco, push_sum, event_triggered, pairwise, diloco, noloco,
    gasloc, awc_gasloc, sparta, allreduce, gradient_exchange;
}  // namespace entries

}  // namespace fast::algorithm
