#include "algorithm/rules/noloco.hpp"

#include "algorithm/checks.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {

RuleTraits NoLoCo::traits() const {
  return {
      .name = "noloco",
      .summary = "H own steps to θ, then a momentum step from φ to the mean of two workers' θ",
      .source = "NoLoCo, Kolehmainen et al. 2025, arXiv 2506.10911, with γ = α",
      .messages = {.republishes = options.delay == 0},
      .timing = {.publish_point = PublishPoint::after_step,
                 .combine_every = options.period,
                 .delay = options.delay},
      .topology = {.mixing = MixingRequirement::matching},
      .precision = {.why_bits =
                        "a partner that changes holds nothing to which differences could refer"},
      .memory = {.vectors = 2},
      .parameters = fmt::format("period={} rate={} momentum={} delay={} blend={}", options.period,
                                options.rate, options.momentum, options.delay, options.blend)};
}

Rule noloco(const NolocoOptions& options) {
  require_outer("noloco", options, options.period);
  require_decay("noloco", "momentum", options.momentum);
  return elementwise(NoLoCo{{}, options});
}

const RuleEntry entries::noloco{[](ParameterReader& reader) {
  NolocoOptions options;
  reader.read("period", options.period);
  reader.read("rate", options.rate);
  reader.read("momentum", options.momentum);
  reader.read("delay", options.delay);
  reader.read("blend", options.blend);
  return algorithm::noloco(options);
}};

}  // namespace fast::algorithm
