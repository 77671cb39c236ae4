#include <fast/core/error.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

/// Memory: P for the average. Bytes: P a neighbor; 2P(N-1)/N in the rounds that average.
struct GossipPga : Averaging {
  GossipPgaOptions options;

  RuleTraits traits() const {
    return {.name = "gossip_pga",
            .summary = "Σ_j W_ij (x_j + δ_j), and every H rounds the exact average of all",
            .source = "Gossip-PGA, Chen et al. 2021, arXiv 2105.09080, algorithm 1",
            .messages = {.own = Own::unused, .republishes = true},
            .timing = {.publish_point = PublishPoint::after_step, .average_every = options.period},
            .parameters = fmt::format("period={}", options.period)};
  }
};

}  // namespace

Rule gossip_pga(const GossipPgaOptions& options) {
  require(options.period >= 1, ErrorKind::argument, "gossip_pga: period {}; it must be 1 or more",
          options.period);
  return elementwise(GossipPga{{}, options});
}

const RuleEntry entries::gossip_pga{[](ParameterReader& reader) {
  GossipPgaOptions options;
  reader.read("period", options.period);
  return algorithm::gossip_pga(options);
}};

}  // namespace fast::algorithm
