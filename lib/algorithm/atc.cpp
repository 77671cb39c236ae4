#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

struct AdaptThenCombine {
  static Declaration declare() {
    return {.name = "atc",
            .summary = "Σ_j W_ij (x_j + δ_j): each steps, then all average",
            .source = "diffusion, Chen & Sayed 2012",
            .publish_point = PublishPoint::after_step};
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

std::unique_ptr<Algorithm> atc() { return std::make_unique<Elementwise<AdaptThenCombine>>(); }

}  // namespace fast::algorithm
