#include <fast/core/error.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/partial_averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

RuleTraits traits_of_awc() {
  return {.name = "awc",
          .summary = "Σ_j W_ij x_j + δ_i: neighbors are read while gradients are computed",
          .source = "D-PSGD, Lian et al. 2017, arXiv 1705.09056, algorithm 1",
          .messages = {.own = Own::unused},
          .timing = {.publish_point = PublishPoint::before_step}};
}

struct AdaptWhileCombine : Averaging {
  static RuleTraits traits() {
    RuleTraits traits = traits_of_awc();
    traits.plain_average = true;
    return traits;
  }
};

}  // namespace

RuleTraits PartialAveraging::traits() const {
  RuleTraits traits = traits_of_awc();
  traits.source = "DSGD-AC, arXiv 2602.02899, with a = (learning rate / largest)^p";
  traits.step.needs_learning_rate = options.power > 0;
  traits.parameters = fmt::format("consensus={} power={}", options.consensus, options.power);
  return traits;
}

void PartialAveraging::begin_combine(const RoundInfo& info, std::span<const double>,
                                     std::span<const double>) {
  step = options.consensus;
  if (options.power == 0) return;
  largest_rate = std::max({largest_rate, info.learning_rate, info.largest_rate});
  step *= std::pow(info.learning_rate / largest_rate, options.power);
}

Rule awc(const AwcOptions& options) {
  require(options.consensus > 0 && options.consensus <= 1 && options.power >= 0,
          ErrorKind::argument,
          "awc: consensus {}, power {}; consensus must be above 0 and at most 1, power 0 or more",
          options.consensus, options.power);
  if (options.consensus == 1 && options.power == 0) return elementwise(AdaptWhileCombine{});
  return elementwise(PartialAveraging{{}, options});
}

const RuleEntry entries::awc{[](ParameterReader& reader) {
  AwcOptions options;
  reader.read("consensus", options.consensus);
  reader.read("power", options.power);
  return algorithm::awc(options);
}};

}  // namespace fast::algorithm
