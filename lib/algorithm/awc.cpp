#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

struct AdaptWhileCombine {
  static Declaration declare() {
    return {.name = "awc",
            .summary = "Σ_j W_ij x_j + δ_i: neighbours are read while gradients are computed",
            .source = "D-PSGD, Lian et al. 2017, arXiv 1705.09056, algorithm 1",
            .publish_point = PublishPoint::before_step,
            .plain_average = true};
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

std::unique_ptr<Algorithm> awc() { return std::make_unique<Elementwise<AdaptWhileCombine>>(); }

}  // namespace fast::algorithm
