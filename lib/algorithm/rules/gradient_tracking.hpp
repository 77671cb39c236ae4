// Gradient tracking: what a step and a combination do to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/init_reference.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: 2P of state, slots of 2P. Bytes: 2P a neighbor.
/// At staleness above 0 x travels as it is and y as running sums, so that the trackers' sum and
/// what is on its way remain that of the steps: ASY-SONATA (Tian, Sun & Scutari 2018, arXiv
/// 1803.10359), with slots and messages of 8 bytes an element. State: where the worker stood, and
/// W_{t-1} y_{t-1} - δ_{t-1}, so that y_t is that plus δ_t. It is kept as the sum of the pulls:
/// what rounding adds to it moves the mean in every round from then on. Without some workers, rows
/// of W sum to 1 for x, and columns for y: AB, or Push-Pull (Pu, Shi, Xu & Nedić 2018, arXiv
/// 1810.06653). A worker that has only given shares of y in more combinations than there are
/// workers, and has got none, would stand still. It makes its own steps, without δ in y: the other
/// trackers then sum to the steps of the others.
class GradientTracking {
 public:
  using Arithmetic = GradientTracking;

  static RuleTraits traits();

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
    given_ = 0;
    is_alone_ = 0;
    was_alone_ = false;
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      const T x = block.state[0][e];
      block.payload[0][e] = x;
      block.payload[1][e] = block.state[1][e] + (is_alone_ != 0 ? T{0} : block.current[e] - x);
    }
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull);
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    if (block.info.restarts) return take_shares(block);
    // Not 0 where a neighbor is there in one direction only.
    const T kept = static_cast<T>(block.info.self_weight + block.info.neighbor_weight - 1);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T drift = was_alone_ ? T{0} : block.state[1][e];
      const T next = block.current[e] + (drift + block.pull[0][e]);
      // Readers take their shares of the message, so that what stays is of it, too.
      block.state[1][e] += kept * block.message[1][e] + block.pull[1][e];
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }

  std::vector<TensorView> numbers() {
    return {view_of("gradient_tracking.given", std::span(&given_, 1)),
            view_of("gradient_tracking.is_alone", std::span(&is_alone_, 1))};
  }

 private:
  /// Of neighbors that began before this worker: what they sent it is part of the trackers' sum.
  template <class T>
  FAST_HOST_DEVICE static void take_shares(const Block<T>& block) {
    const T weight = static_cast<T>(block.info.neighbor_weight);
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[1][e] = weight * block.own[1][e] + block.pull[1][e];
    }
  }

  std::int64_t given_ = 0;     ///< combinations that took shares away and brought none
  std::uint8_t is_alone_ = 0;  ///< 0 or 1; tensors have no bool
  bool was_alone_ = false;     ///< when it published for this combination
};

}  // namespace fast::algorithm
