#include <fast/core/error.hpp>

#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

/// Memory: none besides the slots. Bytes: P per neighbor.
struct Damped {
  double share = 0.5;

  RuleTraits traits() const {
    return {.name = "damped",
            .summary = "x_i + δ_i + a Σ_j W_ij (x_j - x_i)",
            .source = "-",
            .parameters = fmt::format("share={}", share)};
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T part = static_cast<T>(share);
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += part * block.pull[0][e];
  }
};

}  // namespace

const RuleEntry entries::damped{[](ParameterReader& reader) {
  Damped rule;
  reader.read("share", rule.share);
  require(rule.share > 0 && rule.share <= 1, ErrorKind::argument,
          "damped: share {}; it must be above 0 and at most 1", rule.share);
  return elementwise(rule);
}};

}  // namespace fast::algorithm
