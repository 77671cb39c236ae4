#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>

namespace fast::algorithm {
namespace {

/// Memory: none beyond the slots. Bytes: P a neighbour every `period` steps.
struct LocalSgd {
  LocalOptions options;

  Declaration declare() const {
    return {.name = "local",
            .summary = "H own steps, then Σ_j W_ij (x_j + δ_j)",
            .source =
                "local SGD, Stich 2019, arXiv 1805.09767, algorithm 1; gossip in place of "
                "the average",
            .publish_point = PublishPoint::after_step,
            .combine_every = options.period,
            .parameters = fmt::format("period={}", options.period)};
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

std::unique_ptr<Algorithm> local(const LocalOptions& options) {
  require(options.period >= 1, ErrorKind::argument, "local: period {}; it must be 1 or more",
          options.period);
  return std::make_unique<Elementwise<LocalSgd>>(LocalSgd{options});
}

}  // namespace fast::algorithm
