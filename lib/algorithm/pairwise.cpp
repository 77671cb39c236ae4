#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

/// Memory: none beyond the slots. Bytes: P a round in which the worker has a partner.
struct Pairwise {
  static Declaration declare() {
    return {.name = "pairwise",
            .summary = "both of a pair take (x_i + x_j)/2, each adds its own δ",
            .source = "AD-PSGD, Lian et al. 2018, arXiv 1710.06952, algorithm 1, in rounds",
            .mixing = Mixing::matching,
            .plain_average = true,
            .why_synchronous = "both of a pair must average the same two values"};
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

std::unique_ptr<Algorithm> pairwise() { return std::make_unique<Elementwise<Pairwise>>(); }

}  // namespace fast::algorithm
