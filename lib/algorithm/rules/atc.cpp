#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

struct AdaptThenCombine : Averaging {
  static RuleTraits traits() {
    return {.name = "atc",
            .summary = "Σ_j W_ij (x_j + δ_j): each steps, then all average",
            .source = "diffusion, Chen & Sayed 2012",
            .messages = {.own = Own::unused, .republishes = true},
            .timing = {.publish_point = PublishPoint::after_step}};
  }
};

}  // namespace

Rule atc() { return elementwise(AdaptThenCombine{}); }

const RuleEntry entries::atc{[](ParameterReader&) { return algorithm::atc(); }};

}  // namespace fast::algorithm
