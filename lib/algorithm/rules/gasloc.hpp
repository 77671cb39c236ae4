// GASLoC: what an outer step does to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/resynchronization.hpp"
#include "algorithm/rules/outer_steps.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

/// Of all forms of the rule. State: φ, and u of the exchange before.
struct OuterGossip {
  GaslocOptions options;
  double exchanges = 0;  ///< since the start
  double velocity = 0;   ///< γ, or 0 in the first exchange

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    exchanges = 0;
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  void begin_combine(const RoundInfo&, std::span<const double>, std::span<const double>) {
    velocity = exchanges > 0 ? options.acceleration : 0;
    ++exchanges;
  }
  std::vector<TensorView> numbers() {
    return {view_of("gasloc.exchanges", std::span(&exchanges, 1))};
  }

 protected:
  /// u = φ + η(θ - φ).
  template <class T>
  FAST_HOST_DEVICE T stepped(const Block<T>& block, std::size_t e) const {
    const T phi = block.state[0][e];
    return phi + static_cast<T>(options.rate) * (block.current[e] - phi);
  }
  template <class T>
  FAST_HOST_DEVICE void advance(const Block<T>& block, std::size_t e, T u, T averaged) const {
    T next = averaged;
    if (block.state[1] != nullptr) {
      next += static_cast<T>(velocity) * (u - block.state[1][e]);
      block.state[1][e] = u;
    }
    block.state[0][e] = next;
    block.current[e] = blended(options.blend, block.current[e], next);
  }
};

/// Memory: P of state, 2P with an acceleration. Bytes: P a neighbor every `period` steps.
struct GasLoC : OuterGossip {
  using Arithmetic = GasLoC;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = stepped(block, e);
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T alpha = static_cast<T>(options.consensus_step);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T u = block.own[0][e];
      advance(block, e, u, u + alpha * block.pull[0][e]);
    }
  }
};

/// Sends q = u - x̂_i, where all neighbors hold x̂_i, the sum of this worker's messages. What a codec
/// loses is in the next difference. Memory: 4P of state (the copies of neighbors in one vector, as
/// in choco).
/// State: u, u of the exchange before, x̂_i, Σ_j W_ij (x̂_j - x̂_i).
struct CodedGasLoC : OuterGossip {
  using Arithmetic = CodedGasLoC;

  Resynchronization resynchronization;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    OuterGossip::start(block);
    resynchronization.start(block.info);
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[2][e] = block.info.starts_equal ? block.current[e] : T{0};
      block.state[3][e] = 0;
    }
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    const T eta = static_cast<T>(options.rate);
    const bool sends = resynchronization.sends();
    for (std::size_t e = 0; e < block.count; ++e) {
      T& u = block.state[0][e];
      u += eta * (block.current[e] - u);
      block.payload[0][e] = sends ? u - block.state[2][e] : T{0};
    }
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) {
    OuterGossip::begin_combine(info, own, pull);
    resynchronization.begin_combine(info);
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T alpha =
        resynchronization.uses_differences() ? static_cast<T>(options.consensus_step) : T{0};
    for (std::size_t e = 0; e < block.count; ++e) {
      const T u = block.state[0][e];
      block.state[2][e] += block.own[0][e];
      block.state[3][e] += block.pull[0][e];
      advance(block, e, u, u + alpha * block.state[3][e]);
    }
  }

  std::vector<TensorView> numbers() {
    std::vector<TensorView> views = OuterGossip::numbers();
    views.push_back(resynchronization.view());
    return views;
  }
};

/// Throws Error(argument) on options out of range.
void require_outer_gossip(std::string_view rule, const GaslocOptions& options);

}  // namespace fast::algorithm
