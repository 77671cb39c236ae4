#include <fast/algorithm/rules.hpp>

#include <array>

#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

/// Memory: 2P of state, slots of 3P. Bytes: 2P a neighbor, of which it uses P.
/// A message to one side is the mean of the workers on the other side and the sender, and how many
/// they are: means are as large as weights, sums would grow with the number of workers. A worker
/// averages those whose weights it has got, each with the same share. The authors' code does so
/// with normalization_mode "counts". By default it divides by N, and puts the initial weights, or
/// the worker's last average, in the place of workers whose weights have not come.
/// State: the means that came from higher and from lower workers, each as it was in one message.
class RelaySum {
 public:
  static RuleTraits traits() {
    return {.name = "relay_sum",
            .summary =
                "x_i + δ_i averaged with what both sides pass on: at distance d, d - 1 rounds old",
            .source = "RelaySGD, Vogels et al. 2021, arXiv 2110.04175, algorithm 1, on a chain",
            .messages = {.vectors = sides,
                         .scalars = sides,
                         .weights_apart = true,
                         .by_side = true,
                         .own = Own::message},
            .timing = {.publish_point = PublishPoint::after_step,
                       .why_synchronous = "a worker must pass on each message in the next round"},
            .topology = {.mixing = MixingRequirement::chain, .needs_static = true},
            .precision = {.why_exact = "what a code takes of a message travels on"},
            .memory = {.vectors = sides}};
  }

  template <class T>
  void start(const Block<T>& block) {
    counts_ = {};
    for (int side = 0; side < sides; ++side) {
      std::copy_n(block.current, block.count, block.state[side]);
    }
  }
  bool begin_publish(const RoundInfo&, std::span<double> scalars) {
    for (std::size_t side = 0; side < sides; ++side) scalars[side] = counts_[side] + 1;
    return true;
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t side = 0; side < sides; ++side) {
      const T share = static_cast<T>(counts_[side] / (counts_[side] + 1));
      for (std::size_t e = 0; e < block.count; ++e) {
        const T own = block.current[e];
        block.payload[side][e] = own + share * (block.state[side][e] - own);
      }
    }
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) {
    for (std::size_t side = 0; side < sides; ++side)
      counts_[side] = info.side_weight[side] * own[side] + pull[side];
  }
  template <class T>
  void combine(const Block<T>& block) {
    const double all = 1 + counts_[0] + counts_[1];
    const T higher = static_cast<T>(counts_[0] / all), lower = static_cast<T>(counts_[1] / all);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T x = block.current[e];
      for (std::size_t side = 0; side < sides; ++side)
        block.state[side][e] = block.own[side][e] + block.pull[side][e];
      block.current[e] = x + (higher * (block.state[0][e] - x) + lower * (block.state[1][e] - x));
    }
  }

  std::vector<TensorView> numbers() {
    return {view_of("relay_sum.counts", std::span<double>(counts_))};
  }

 private:
  /// Side 0 has the higher workers: what came from there goes to the lower ones.
  static constexpr int sides = 2;

  std::array<double, sides> counts_{};  ///< of workers in the messages of each side
};

}  // namespace

Rule relay_sum() { return elementwise(RelaySum{}); }

const RuleEntry entries::relay_sum{[](ParameterReader&) { return algorithm::relay_sum(); }};

}  // namespace fast::algorithm
