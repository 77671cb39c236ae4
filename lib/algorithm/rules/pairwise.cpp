#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

/// Memory: none beyond the slots. Bytes: P a round in which the worker has a partner.
struct Pairwise : Averaging {
  static RuleTraits traits() {
    return {.name = "pairwise",
            .summary = "both of a pair take (x_i + x_j)/2, each adds its own δ",
            .source = "AD-PSGD, Lian et al. 2018, arXiv 1710.06952, algorithm 1, in rounds",
            .plain_average = true,
            .messages = {.own = Own::unused},
            .timing = {.why_synchronous = "both of a pair must average the same two values"},
            .topology = {.mixing = MixingRequirement::matching}};
  }
};

}  // namespace

Rule pairwise() { return elementwise(Pairwise{}); }

const RuleEntry entries::pairwise{[](ParameterReader&) { return algorithm::pairwise(); }};

}  // namespace fast::algorithm
