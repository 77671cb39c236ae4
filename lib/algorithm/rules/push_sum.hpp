// Stochastic gradient push: what a step and a combination do to each element, and the mass beside.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: P of state, slots of 2P (one P for the mean model). Bytes: P and a double a neighbor.
/// State: the biased x; the model holds z = x/p. What rounding takes from a message (of 16-bit
/// weights) stays with the worker, so that the workers' sum stays.
/// At staleness above 0 running sums travel, of 8 bytes an element (memory: one of the worker's
/// own, two a neighbor; Assran & Rabbat 2018, arXiv 1803.08950). A worker that pushes on without
/// hearing from others would grow light, and its steps δ/p large: when lighter than half its
/// typical mass it keeps what it has, and its step counts as much less as it is lighter than that.
/// At staleness 0, a worker that is lighter than 1/2 and to which nobody pushed keeps what it has:
/// all that push to it may be lost, or the network between them cut.
class PushSum {
 public:
  using Arithmetic = PushSum;

  static RuleTraits traits();

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    mass_ = typical_mass_ = held_ = 1;
    hears_nobody_ = 0;
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  bool begin_publish(const RoundInfo& info, std::span<double> scalars);
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    const T mass = static_cast<T>(mass_), step = static_cast<T>(step_);
    for (std::size_t e = 0; e < block.count; ++e) {
      T& x = block.state[0][e];
      const T stepped = x + step * (block.current[e] - x / mass);
      x = keeps_ ? stepped : T{0};
      block.payload[0][e] = keeps_ ? T{0} : stepped;
    }
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull);
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T row_sum = static_cast<T>(block.info.self_weight + block.info.neighbor_weight);
    const T mass = static_cast<T>(mass_);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T message = block.message[0][e], lost = block.own[0][e] - message;
      const T next = block.state[0][e] + lost + row_sum * message + block.pull[0][e];
      block.state[0][e] = next;
      block.current[e] = next / mass;
    }
  }

  std::vector<TensorView> numbers() {
    return {view_of("push_sum.mass", std::span(&mass_, 1)),
            view_of("push_sum.typical_mass", std::span(&typical_mass_, 1)),
            view_of("push_sum.hears_nobody", std::span(&hears_nobody_, 1))};
  }

 private:
  double mass_ = 1;
  double typical_mass_ = 1;
  double held_ = 1;                ///< mass that is not in the worker's own message
  double step_ = 1;                ///< share of the step that counts
  bool keeps_ = false;             ///< nothing is pushed in this round
  std::uint8_t hears_nobody_ = 0;  ///< 1: nothing arrived in the last round; tensors have no bool
};

}  // namespace fast::algorithm
