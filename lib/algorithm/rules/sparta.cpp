#include <cmath>
#include <fast/core/error.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/row.hpp"

namespace fast::algorithm {
namespace {

/// Memory: P in a slot for the mean model. Bytes: pP a neighbor.
/// Of each run of 1/p entries one travels.
struct Sparta {
  SpartaOptions options;

  std::int64_t run() const { return std::llround(1 / options.fraction); }

  Declaration declare() const {
    return {.name = "sparta",
            .summary = "x_i + δ_i; then a random part of the entries becomes Σ_j W_ij (x_j + δ_j)",
            .source = "SPARTA, exo-explore/gym, strategy/sparta.py, with neighbors in place of all",
            .publish_point = PublishPoint::after_step,
            .publishes_weights_apart = true,
            .own = Own::unused,
            .selection = {Selection::Kind::one_of_each_run, run(),
                          static_cast<std::uint64_t>(options.seed)},
            .least_bits = 16,
            .why_bits = "entries that travel alone share no scale",
            .parameters = fmt::format("fraction={} seed={}", options.fraction, options.seed)};
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

}  // namespace

Rule sparta(const SpartaOptions& options) {
  require(options.fraction > 0 && options.fraction <= 1, ErrorKind::argument,
          "sparta: fraction {}; it must be above 0 and at most 1", options.fraction);
  return elementwise(Sparta{options});
}

const Row rows::sparta{[](ParameterReader& reader) {
  SpartaOptions options;
  reader.read("fraction", options.fraction);
  reader.read("seed", options.seed);
  return algorithm::sparta(options);
}};

}  // namespace fast::algorithm
