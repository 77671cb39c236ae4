// Rules that correct the steps of workers whose data differ: what they do to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

// Steps added to the neighbors': what that does to each element.

/// Memory: P of state, slots of 2P (one P for the mean model). Bytes: P a neighbor.
/// State: where the worker stood.
struct GradientExchange {
  using Arithmetic = GradientExchange;

  static RuleTraits traits();

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] - block.state[0][e];
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T neighbors = static_cast<T>(block.info.neighbor_weight);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = block.current[e] + block.pull[0][e] + neighbors * block.own[0][e];
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

// Gradient tracking: what a step and a combination do to each element.

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

// D²: what a step and a combination do to each element.

/// Memory: P of state. Bytes: P a neighbor.
/// State: x - x⁻ - δ⁻, which is what the last combination added to the worker's own step. The sum
/// of the pulls is the same number. The difference of two rounded weights would gather their
/// rounding errors, and these would move the mean in every round from then on.
struct D2 {
  using Arithmetic = D2;

  D2Options options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    clear_state(block, 0);
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] + block.state[0][e];
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[0][e] += block.pull[0][e];
      block.current[e] += block.state[0][e];
    }
  }
};

// EDM: what a step and a combination do to each element.

/// D² of steps with momentum. Memory: 3P of state. Bytes: P a neighbor.
/// State: where the worker stood, s, and x - x⁻ - s⁻, kept as that of D².
struct Edm {
  using Arithmetic = Edm;

  EdmOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
    clear_state(block, 2);
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    const T beta = static_cast<T>(options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] + (beta * block.state[1][e] + block.state[2][e]);
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T beta = static_cast<T>(options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T carried = beta * block.state[1][e];
      block.state[1][e] = carried + (block.current[e] - block.state[0][e]);
      block.state[2][e] += block.pull[0][e];
      block.current[e] += carried + block.state[2][e];
      block.state[0][e] = block.current[e];
    }
  }
};

// Global update tracking: what a step and a combination do to each element.

/// D² whose correction decays, and momentum of what averages moved. Memory: P of state, with
/// momentum 3P. Bytes: P a neighbor.
/// Let X be the paper's x. The worker stands at W X, where the authors' code takes the gradients,
/// and publishes X. Both have the same mean over the workers, whatever the momentum. At first
/// W X = X, also of workers that start apart.
/// State: X⁺ - W X - δ, which is what the next publication adds to the worker's own step; with
/// momentum also X, and W X - X. Of these, only what decays by μ or β goes on.
struct Gut {
  using Arithmetic = Gut;

  GutOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    clear_state(block, 0);
    if (options.momentum == 0) return;
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[1][e] = block.current[e];
      block.state[2][e] = 0;
    }
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] + block.state[0][e];
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T mu = static_cast<T>(options.mu), beta = static_cast<T>(options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T ahead = block.state[0][e], pull = block.pull[0][e];
      T next = mu * (ahead + pull);
      if (options.momentum != 0) {
        const T moved = (block.current[e] - block.state[1][e]) + ahead;
        next += beta * (moved + mu * block.state[2][e]);
        block.state[1][e] = block.current[e] + ahead;
        block.state[2][e] = pull;
      }
      block.state[0][e] = next;
      block.current[e] += ahead + pull;
    }
  }
};

// DecentLaM: what a step and a combination do to each element.

/// Memory: 2P of state. Bytes: P a neighbor.
/// State: where the worker stood, and m.
struct DecentLam : WeightsPublished {
  using Arithmetic = DecentLam;

  DecentLamOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T beta = static_cast<T>(options.momentum);
    const T rate = static_cast<T>(block.info.learning_rate);
    const T inverse_rate = static_cast<T>(1 / block.info.learning_rate);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T x = block.state[0][e];
      const T mixed = block.own[0][e] + block.pull[0][e];
      const T m = beta * block.state[1][e] + inverse_rate * (x - mixed);
      const T next = x - rate * m;
      block.state[1][e] = m;
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

// Averaged momentum: what a step and a combination do to each element.

/// Memory: P of state (2P with `atc`), slots of 2P. Bytes: 2P a neighbor.
/// State: s; with `atc` also where the worker stood.
struct AveragedMomentum {
  using Arithmetic = AveragedMomentum;

  AveragedMomentumOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    clear_state(block, 0);
    if (!options.atc) return;
    for (std::size_t e = 0; e < block.count; ++e) block.state[1][e] = block.current[e];
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    const T beta = static_cast<T>(options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      T weights = block.current[e], momentum = block.state[0][e];
      if (options.atc) {
        const T stood = block.state[1][e];
        momentum = beta * momentum + (weights - stood);
        weights = stood + momentum;
      }
      block.payload[0][e] = weights;
      block.payload[1][e] = momentum;
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T beta = static_cast<T>(options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T momentum = block.own[1][e] + block.pull[1][e];
      if (options.atc) {
        block.state[0][e] = momentum;
        block.state[1][e] = block.current[e] = block.own[0][e] + block.pull[0][e];
      } else {
        const T carried = beta * momentum;
        block.state[0][e] = carried + (block.current[e] - block.own[0][e]);
        block.current[e] += carried + block.pull[0][e];
      }
    }
  }
};

// Quasi-global momentum: what a step and a combination do to each element.

/// Memory: 2P of state. Bytes: P a neighbor.
/// State: where the worker stood, and m.
struct QuasiGlobalMomentum {
  using Arithmetic = QuasiGlobalMomentum;

  QuasiGlobalMomentumOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    const T factor = static_cast<T>(block.info.learning_rate * options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] - factor * block.state[1][e];
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T mu = static_cast<T>(options.mu);
    const T factor = static_cast<T>((1 - options.mu) / block.info.learning_rate);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = block.own[0][e] + block.pull[0][e];
      block.state[1][e] = mu * block.state[1][e] + factor * (block.state[0][e] - next);
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

}  // namespace fast::algorithm
