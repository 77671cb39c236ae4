#include "algorithm/rules/d2.hpp"
#include "algorithm/row.hpp"

#include <fmt/core.h>

namespace fast::algorithm {

Declaration D2::declare() const {
  return {.name = "d2",
          .summary = "W (2x - x⁻ + δ - δ⁻): no error from workers' data differing",
          .source = "D², Tang et al. 2018, arXiv 1803.07068, algorithm 1",
          .publish_point = PublishPoint::after_step,
          .state_vectors = 1,
          .mixing = Mixing::positive,
          .own = Own::unused,
          .republishes = true,
          .remembers_neighbors = true,
          .needs_static_topology = true,
          .strict = options.strict,
          .why_synchronous = "its correction cancels only terms of one and the same round",
          .parameters = fmt::format("strict={}", options.strict)};
}

Rule d2(const D2Options& options) { return elementwise(D2{options}); }

const Row rows::d2{[](ParameterReader& reader) {
  D2Options options;
  reader.read("strict", options.strict);
  return algorithm::d2(options);
}};

}  // namespace fast::algorithm
