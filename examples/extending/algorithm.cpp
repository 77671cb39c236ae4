// A rule outside the library: damped averaging.
#include <cstdio>
#include <fast/fast.hpp>
#include <memory>
#include <vector>

/// Each worker moves only a part of the way to its neighbors.
struct Damped {
  double share = 0.5;

  fast::algorithm::RuleTraits traits() const {
    return {.name = "damped",
            .summary = "x_i + δ_i + a Σ_j W_ij (x_j - x_i)",
            .source = "-",
            .parameters = "share=" + std::to_string(share)};
  }
  template <class T>
  void publish(const fast::algorithm::Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const fast::algorithm::Block<T>& block) {
    const T part = static_cast<T>(share);
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += part * block.pull[0][e];
  }
};

int main() {
  float results[2];
  fast::local::run(2, [&](const fast::Group& group) {
    std::vector<float> x(3, static_cast<float>(group.rank()));
    fast::WorkerOptions options;
    options.initial = fast::Initial::as_is;
    options.algorithm = fast::algorithm::elementwise(Damped{.share = 0.5});
    fast::Worker worker(group, fast::stencil::ring(), {fast::view_of("x", std::span(x))}, options);
    worker.step([] {});
    results[worker.rank()] = x[0];
  });
  std::printf("worker 0: %.2f\nworker 1: %.2f\n", results[0], results[1]);
}
