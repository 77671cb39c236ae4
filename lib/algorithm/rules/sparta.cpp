#include "algorithm/rules/sparta.hpp"

#include <fast/core/error.hpp>

#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {

RuleTraits Sparta::traits() const {
  return {.name = "sparta",
          .summary = "x_i + δ_i; then a random part of the entries becomes Σ_j W_ij (x_j + δ_j)",
          .source = "SPARTA, exo-explore/gym, strategy/sparta.py, with neighbors in place of all",
          .messages = {.selection = selection(), .weights_apart = true, .own = Own::unused},
          .timing = {.publish_point = PublishPoint::after_step},
          .precision = {.least_bits = 16, .why_bits = "entries that travel alone share no scale"},
          .parameters = fmt::format("fraction={} seed={}", options.fraction, options.seed)};
}

Rule sparta(const SpartaOptions& options) {
  require(options.fraction > 0 && options.fraction <= 1, ErrorKind::argument,
          "sparta: fraction {}; it must be above 0 and at most 1", options.fraction);
  return elementwise(Sparta{{}, options});
}

const RuleEntry entries::sparta{[](ParameterReader& reader) {
  SpartaOptions options;
  reader.read("fraction", options.fraction);
  reader.read("seed", options.seed);
  return algorithm::sparta(options);
}};

}  // namespace fast::algorithm
