#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

struct None : Averaging {
  static RuleTraits traits() {
    return {.name = "none",
            .summary = "x_i + δ_i: every worker trains alone",
            .source = "-",
            .topology = {.scope = Scope::nobody, .mixing = MixingRequirement::anything},
            .precision = {.why_exact = "it sends nothing"}};
  }
};

}  // namespace

Rule none() { return elementwise(None{}); }

const RuleEntry entries::none{[](ParameterReader&) { return algorithm::none(); }};

}  // namespace fast::algorithm
