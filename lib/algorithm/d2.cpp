#include <fmt/format.h>
#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

/// Memory: P of state. Bytes: P a neighbour.
/// State: x - x⁻ - δ⁻, which is what the last combination added to the worker's own step.
struct D2 {
  D2Options options;

  Declaration declare() const {
    return {.name = "d2",
            .summary = "W (2x - x⁻ + δ - δ⁻): no error from workers' data differing",
            .source = "D², Tang et al. 2018, arXiv 1803.07068, algorithm 1",
            .publish_point = PublishPoint::after_step,
            .state_vectors = 1,
            .mixing = Mixing::positive,
            .republishes = true,
            .needs_static_topology = true,
            .strict = options.strict,
            .why_synchronous = "its correction cancels only terms of one and the same round",
            .parameters = fmt::format("strict={}", options.strict)};
  }
  template <class T>
  void start(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = 0;
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] + block.state[0][e];
    }
  }
  template <class T>
  void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = block.own[0][e] + block.pull[0][e];
      block.state[0][e] = next - block.current[e];
      block.current[e] = next;
    }
  }
};

}  // namespace

std::unique_ptr<Algorithm> d2(const D2Options& options) {
  return std::make_unique<Elementwise<D2>>(D2{options});
}

}  // namespace fast::algorithm
