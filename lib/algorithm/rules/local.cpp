#include <fast/core/error.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

/// Memory: none beyond the slots. Bytes: P a neighbor every `period` steps.
struct LocalSgd : Averaging {
  LocalOptions options;

  RuleTraits traits() const {
    return {.name = "local",
            .summary = "H own steps, then Σ_j W_ij (x_j + δ_j)",
            .source =
                "local SGD, Stich 2019, arXiv 1805.09767, algorithm 1; gossip in place of "
                "the average",
            .messages = {.own = Own::unused, .republishes = true},
            .timing = {.publish_point = PublishPoint::after_step, .combine_every = options.period},
            .parameters = fmt::format("period={}", options.period)};
  }
};

}  // namespace

Rule local(const LocalOptions& options) {
  require(options.period >= 1, ErrorKind::argument, "local: period {}; it must be 1 or more",
          options.period);
  return elementwise(LocalSgd{{}, options});
}

const RuleEntry entries::local{[](ParameterReader& reader) {
  LocalOptions options;
  reader.read("period", options.period);
  return algorithm::local(options);
}};

}  // namespace fast::algorithm
