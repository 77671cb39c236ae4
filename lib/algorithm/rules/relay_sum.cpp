#include <fast/algorithm/rules.hpp>

#include <array>

#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

/// Memory: DP of state, slots of (D+1)P, with D the degree. Bytes: P a neighbor. A message to a
/// neighbor is the mean of the sender and of the workers behind its other neighbors, and how many
/// they are: means are as large as weights, sums would grow with the number of workers. A worker
/// averages those whose weights it has got, each with the same share. The authors' code does so
/// with normalization_mode "counts". By default it divides by N, and puts the initial weights, or
/// the worker's last average, in the place of workers whose weights have not come. State: the means
/// that came from each neighbor, as they were in one message.
class RelaySum {
 public:
  explicit RelaySum(std::size_t degree) : degree_(degree) {}

  RuleTraits traits() const {
    const int degree = static_cast<int>(degree_);
    return {.name = "relay_sum",
            .summary =
                "x_i + δ_i averaged with what all sides pass on: at distance d, d - 1 rounds old",
            .source = "RelaySGD, Vogels et al. 2021, arXiv 2110.04175, algorithm 1",
            .messages = {.vectors = degree,
                         .scalars = degree,
                         .weights_apart = true,
                         .by_edge = true,
                         .own = Own::message},
            .timing = {.publish_point = PublishPoint::after_step,
                       .why_synchronous = "a worker must pass on each message in the next round"},
            .topology = {.mixing = MixingRequirement::tree, .needs_static = true},
            .precision = {.why_exact = "what a code takes of a message travels on"},
            .memory = {.vectors = degree},
            .parameters = fmt::format("degree={}", degree)};
  }

  template <class T>
  void start(const Block<T>& block) {
    counts_ = {};
    for (std::size_t k = 0; k < degree_; ++k)
      std::copy_n(block.current, block.count, block.state[k]);
  }
  bool begin_publish(const RoundInfo&, std::span<double> scalars) {
    for (std::size_t to = 0; to < degree_; ++to) scalars[to] = count_without(from(to));
    return true;
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t to = 0; to < degree_; ++to) {
      T* const mean = block.payload[to];
      move_without(from(to), block, 0, block.count, mean);
      for (std::size_t e = 0; e < block.count; ++e) mean[e] = block.current[e] + mean[e];
    }
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) {
    for (std::size_t k = 0; k < degree_; ++k) counts_[k] = info.edge_weight[k] * own[k] + pull[k];
  }
  template <class T>
  void combine(const Block<T>& block) {
    for (std::size_t k = 0; k < degree_; ++k) {
      for (std::size_t e = 0; e < block.count; ++e)
        block.state[k][e] = block.own[k][e] + block.pull[k][e];
    }
    T others[at_once];
    for (std::size_t first = 0; first < block.count; first += at_once) {
      const std::size_t count = std::min(at_once, block.count - first);
      move_without(degree_, block, first, count, others);
      for (std::size_t e = 0; e < count; ++e) block.current[first + e] += others[e];
    }
  }

  std::vector<TensorView> numbers() {
    return {view_of("relay_sum.counts", std::span<double>(counts_).first(degree_))};
  }

 private:
  static constexpr std::size_t at_once = 256;

  /// Where the messages come from to whose sender vector `to` goes.
  std::size_t from(std::size_t to) const { return degree_ - 1 - to; }
  /// The worker and those in all messages but number `left_out`; degree_: in all of them.
  double count_without(std::size_t left_out) const {
    double count = 1;
    for (std::size_t k = 0; k < degree_; ++k)
      if (k != left_out) count += counts_[k];
    return count;
  }
  /// What moves elements from `first` on to the mean of these. A running total of all messages
  /// would keep what it rounds.
  template <class T>
  void move_without(std::size_t left_out, const Block<T>& block, std::size_t first,
                    std::size_t count, T* sum) const {
    std::fill_n(sum, count, T{0});
    const double all = count_without(left_out);
    const T* const x = block.current + first;
    for (std::size_t k = 0; k < degree_; ++k) {
      if (k == left_out || counts_[k] == 0) continue;
      const T share = static_cast<T>(counts_[k] / all);
      const T* const mean = block.state[k] + first;
      for (std::size_t e = 0; e < count; ++e) sum[e] += share * (mean[e] - x[e]);
    }
  }

  std::size_t degree_;
  std::array<double, max_payload_vectors> counts_{};  ///< of workers in each message that came
};

}  // namespace

Rule relay_sum(const RelaySumOptions& options) {
  require(options.degree >= 2 && options.degree <= max_payload_vectors, ErrorKind::argument,
          "relay_sum: degree {}; it must be from 2 to {}, most neighbors of a worker",
          options.degree, max_payload_vectors);
  return elementwise(RelaySum(static_cast<std::size_t>(options.degree)));
}

const RuleEntry entries::relay_sum{[](ParameterReader& reader) {
  RelaySumOptions options;
  reader.read("degree", options.degree);
  return algorithm::relay_sum(options);
}};

}  // namespace fast::algorithm
