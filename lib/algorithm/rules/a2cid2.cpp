#include "algorithm/rules/a2cid2.hpp"

#include <cmath>
#include <string>

#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

std::string text_of(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "adaptive";
}

}  // namespace

RuleTraits A2cid2::traits() const {
  return {.name = "a2cid2",
          .summary = "pairwise, and x̃ ← x̃ + α̃(x_j - x_i) + δ; then x and x̃ mix at the rate η",
          .source = "A²CiD², Nabli et al. 2023, arXiv 2306.08289, algorithm 1, in rounds",
          .messages = {.own = Own::unused},
          .timing = {.why_synchronous = "both of a pair must average the same two values"},
          .topology = {.mixing = MixingRequirement::matching,
                       .needs_meetings = !options.mixing_rate || !options.second_step},
          .memory = {.vectors = 1},
          .parameters = fmt::format("mixing_rate={} second_step={}", text_of(options.mixing_rate),
                                    text_of(options.second_step))};
}

void A2cid2::begin_combine(const RoundInfo& info, std::span<const double>,
                           std::span<const double>) {
  const auto& [spread, resistance] = info.meetings;
  const bool nobody = spread <= 0 || resistance <= 0;
  const double rate =
      options.mixing_rate.value_or(nobody ? 0 : 1 / (2 * std::sqrt(spread * resistance)));
  const double step =
      options.second_step.value_or(nobody ? 0.5 : std::sqrt(spread / resistance) / 2);
  further = 2 * step - 1;
  keeps = std::exp(-2 * rate);
}

Rule a2cid2(const A2cid2Options& options) {
  require(options.mixing_rate.value_or(0) >= 0, ErrorKind::argument,
          "a2cid2: mixing_rate {}; it must be 0 or more", options.mixing_rate.value_or(0));
  require(options.second_step.value_or(1) > 0, ErrorKind::argument,
          "a2cid2: second_step {}; it must be above 0", options.second_step.value_or(1));
  return elementwise(A2cid2{{}, options});
}

const RuleEntry entries::a2cid2{[](ParameterReader& reader) {
  A2cid2Options options;
  reader.read("mixing_rate", options.mixing_rate);
  reader.read("second_step", options.second_step);
  return algorithm::a2cid2(options);
}};

}  // namespace fast::algorithm
