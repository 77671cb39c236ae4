#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>

#include "algorithm/resynchronization.hpp"
#include "algorithm/rule_entry.hpp"
#include "algorithm/top_k.hpp"

namespace fast::algorithm {
namespace {

/// Memory: 2P of state, P of scratch, P in a slot for the mean model. Bytes: what is sent, q, has
/// top_k entries that are not zero; each costs its index (4 bytes) and its value.
/// State: x̂_i (at first 0, or the weights where all start with the same), and Σ_j W_ij (x̂_j - x̂_i),
/// which with a constant W grows by the neighbors' pull of q: so no copy of each neighbor's x̂ is
/// kept.
class Choco {
 public:
  explicit Choco(const ChocoOptions& options) : options_(options) {}

  RuleTraits traits() const {
    return {.name = "choco",
            .summary = "q = top-k of x½ - x̂ is sent; x⁺ = x½ + α Σ_j W_ij (x̂_j - x̂_i)",
            .source = "CHOCO-SGD, Koloskova et al. 2019, arXiv 1902.00340, algorithm 2",
            .messages = {.delivery = Delivery::every,
                         .sparsity = sparsity(),
                         .weights_apart = true,
                         .own = Own::unused,
                         .surveys = true},
            .timing = {.publish_point = PublishPoint::after_step,
                       .why_synchronous = "every message must be added exactly once"},
            .topology = {.needs_static = true},
            .precision = {.why_exact = "it sends few entries as they are"},
            .memory = {.vectors = 2, .remembers_neighbors = true},
            .parameters = fmt::format("top_k={} fraction={} consensus_step={}", options_.top_k,
                                      options_.fraction, options_.consensus_step)};
  }
  template <class T>
  void start(const Block<T>& block) {
    resynchronization_.start(block.info);
    // Weights that all have need not be sent first.
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[0][e] = block.info.starts_equal ? block.current[e] : T{0};
      block.state[1][e] = 0;
    }
  }
  template <class T>
  void survey(const Block<T>& block) {
    if (block.first == 0) largest_.begin();
    for (std::size_t e = 0; e < block.count; ++e) {
      largest_.add(static_cast<double>(block.current[e]) - block.state[0][e]);
    }
  }
  bool begin_publish(const RoundInfo&, std::span<double>) {
    largest_.choose(sparsity().of(largest_.count()));
    return true;
  }
  void begin_combine(const RoundInfo& info, std::span<const double>, std::span<const double>) {
    resynchronization_.begin_combine(info);
  }
  template <class T>
  void publish(const Block<T>& block) {
    const bool sends = resynchronization_.sends();
    for (std::size_t e = 0; e < block.count; ++e) {
      const double difference = static_cast<double>(block.current[e]) - block.state[0][e];
      const T q = sends && largest_.takes(difference) ? static_cast<T>(difference) : T{0};
      block.payload[0][e] = q;
      block.state[0][e] += q;
    }
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T step =
        resynchronization_.uses_differences() ? static_cast<T>(options_.consensus_step) : T{0};
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[1][e] += block.pull[0][e];
      block.current[e] += step * block.state[1][e];
    }
  }

  std::vector<TensorView> numbers() { return {resynchronization_.view()}; }

 private:
  Sparsity sparsity() const { return {options_.top_k, options_.fraction}; }
  ChocoOptions options_;
  Resynchronization resynchronization_;
  TopK largest_;
};

}  // namespace

Rule choco(const ChocoOptions& options) {
  require(options.top_k >= 0 && options.fraction > 0 && options.fraction <= 1 &&
              options.consensus_step > 0 && options.consensus_step <= 1,
          ErrorKind::argument,
          "choco: top_k {}, fraction {}, consensus_step {}; top_k must be 0 or more, the others "
          "above 0 and at most 1",
          options.top_k, options.fraction, options.consensus_step);
  return elementwise(Choco(options));
}

const RuleEntry entries::choco{[](ParameterReader& reader) {
  ChocoOptions options;
  reader.read("top_k", options.top_k);
  reader.read("fraction", options.fraction);
  reader.read("consensus_step", options.consensus_step);
  return algorithm::choco(options);
}};

}  // namespace fast::algorithm
