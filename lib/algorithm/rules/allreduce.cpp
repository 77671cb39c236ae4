#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

/// The Worker hands the average of all workers' δ over as `pull`, and where this worker stood as
/// `own`.
struct AllReduce : WeightsPublished {
  static RuleTraits traits() {
    return {
        .name = "allreduce",
        .summary = "x_i + (1/N) Σ_j δ_j: the synchronous baseline; replicas start and stay equal",
        .source = "-",
        .topology = {.scope = Scope::everybody, .mixing = MixingRequirement::anything},
        .precision = {.why_exact = "replicas stay equal only as long as all add exactly the same"}};
  }
  template <class T>
  void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.current[e] = block.own[0][e] + block.pull[0][e];
    }
  }
};

}  // namespace

Rule allreduce() { return elementwise(AllReduce{}); }

const RuleEntry entries::allreduce{[](ParameterReader&) { return algorithm::allreduce(); }};

}  // namespace fast::algorithm
