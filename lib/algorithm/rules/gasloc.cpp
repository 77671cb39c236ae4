#include "algorithm/rules/gasloc.hpp"

#include <utility>

#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {

RuleTraits GasLoC::traits() const {
  return {.name = "gasloc",
          .summary = "H own steps, u = φ + η(θ - φ), then φ⁺ = u - α(u - Σ_j W_ij u_j) + γ(u - u⁻)",
          .source = "GASLoC, arXiv 2606.11081",
          .messages = {.republishes = options.delay == 0},
          .timing = {.publish_point = PublishPoint::after_step,
                     .combine_every = options.period,
                     .delay = options.delay},
          .precision = {.why_exact = why_weights_exact},
          .memory = {.vectors = options.acceleration == 0 ? 1 : 2},
          .parameters = fmt::format(
              "period={} rate={} consensus_step={} acceleration={} delay={} blend={} changes={}",
              options.period, options.rate, options.consensus_step, options.acceleration,
              options.delay, options.blend, options.changes)};
}

RuleTraits CodedGasLoC::traits() const {
  RuleTraits traits = GasLoC{{*this}}.traits();
  traits.messages.delivery = Delivery::every;
  traits.memory.vectors = 4;
  traits.messages.weights_apart = true;
  traits.messages.own = Own::message;
  traits.precision.why_exact = {};
  traits.precision.least_bits = 1;
  traits.precision.corrects_coding = true;
  traits.messages.republishes = false;
  traits.memory.remembers_neighbors = true;
  traits.topology.needs_static = true;
  traits.timing.why_synchronous = "every difference must be added exactly once";
  return traits;
}

void require_outer_gossip(std::string_view rule, const GaslocOptions& options) {
  require_outer(rule, options, options.period);
  require(options.consensus_step > 0 && options.consensus_step <= 1, ErrorKind::argument,
          "{}: consensus_step {}; it must be above 0 and at most 1", rule, options.consensus_step);
  require_decay(rule, "acceleration", options.acceleration);
}

Rule gasloc(const GaslocOptions& options) {
  require_outer_gossip("gasloc", options);
  if (options.changes) return elementwise(CodedGasLoC{{options}, {}});
  return elementwise(GasLoC{options});
}

const RuleEntry entries::gasloc{[](ParameterReader& reader) {
  GaslocOptions options;
  reader.read("period", options.period);
  reader.read("rate", options.rate);
  reader.read("consensus_step", options.consensus_step);
  reader.read("acceleration", options.acceleration);
  reader.read("delay", options.delay);
  reader.read("blend", options.blend);
  reader.read("changes", options.changes);
  return algorithm::gasloc(options);
}};

namespace {

/// Memory: P of state, 2P with an acceleration. Bytes: P a neighbor.
/// All rounds publish the weights. Before a round between sites, these are u.
struct AwcGasLoC : OuterGossip, WeightsPublished {
  double fresh = 1;      ///< no combination since the start or an exchange
  bool settles = false;  ///< φ takes part in this combination

  RuleTraits traits() const {
    return {.name = "awc_gasloc",
            .summary =
                "awc within sites; between sites u = φ + η(x - φ), then "
                "φ⁺ = u - α(u - Σ_j W_ij u_j) + γ(u - u⁻), x⁺ = φ⁺ + δ_i",
            .source = "awc, and GASLoC, arXiv 2606.11081",
            .topology = {.needs_sites = true},
            .memory = {.vectors = options.acceleration == 0 ? 1 : 2},
            .parameters = fmt::format("rate={} consensus_step={} acceleration={}", options.rate,
                                      options.consensus_step, options.acceleration)};
  }
  template <class T>
  void start(const Block<T>& block) {
    OuterGossip::start(block);
    fresh = 1;
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) {
    settles = std::exchange(fresh, info.between_sites ? 1 : 0) != 0;
    if (info.between_sites) OuterGossip::begin_combine(info, own, pull);
  }
  template <class T>
  void combine(const Block<T>& block) {
    if (block.info.between_sites) {
      exchange(block);
    } else {
      average(block);
    }
    if (!block.info.between_sites_next || options.rate == 1) return;
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] = stepped(block, e);
  }

  std::vector<TensorView> numbers() {
    std::vector<TensorView> views = OuterGossip::numbers();
    views.push_back(view_of("awc_gasloc.fresh", std::span(&fresh, 1)));
    return views;
  }

 private:
  template <class T>
  void average(const Block<T>& block) const {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.current[e] += block.pull[0][e];
      if (settles) block.state[0][e] += block.pull[0][e];
    }
  }
  template <class T>
  void exchange(const Block<T>& block) const {
    const T alpha = static_cast<T>(options.consensus_step);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T u = block.own[0][e], step = block.current[e] - u;
      advance(block, e, u, u + alpha * block.pull[0][e]);
      block.current[e] += step;
    }
  }
};

}  // namespace

Rule awc_gasloc(const AwcGaslocOptions& options) {
  const GaslocOptions outer{.rate = options.rate,
                            .consensus_step = options.consensus_step,
                            .acceleration = options.acceleration};
  require_outer_gossip("awc_gasloc", outer);
  return elementwise(AwcGasLoC{{outer}, {}});
}

const RuleEntry entries::awc_gasloc{[](ParameterReader& reader) {
  AwcGaslocOptions options;
  reader.read("rate", options.rate);
  reader.read("consensus_step", options.consensus_step);
  reader.read("acceleration", options.acceleration);
  return algorithm::awc_gasloc(options);
}};

}  // namespace fast::algorithm
