// The messages of an all-reduce.
#pragma once

#include <fast/simulation/workload.hpp>

#include <algorithm>
#include <bit>

namespace fast::simulation {

inline constexpr int nobody = -1;

/// What one worker does in one step: it sends, and waits for what it receives.
struct CollectiveStep {
  int to = nobody, from = nobody;
  double size_bytes = 0;
};

class Collective {
 public:
  Collective(Pattern pattern, int workers, double payload_bytes)
      : pattern_(pattern), workers_(workers), payload_bytes_(payload_bytes) {
    core_ = static_cast<int>(std::bit_floor(static_cast<unsigned>(workers)));
    doublings_ = std::countr_zero(static_cast<unsigned>(core_));
    const int exchanges = halves() ? 2 * doublings_ : doublings_;
    steps_ = rings() ? 2 * (workers - 1) : exchanges + (folds() ? 2 : 0);
  }

  int steps() const { return steps_; }

  CollectiveStep at(int worker, int step) const {
    if (rings()) return ring_step(worker);
    if (!folds()) return exchange_step(worker, step);
    if (step == 0 || step == steps_ - 1) return fold(worker, step == 0);
    return exchange_step(worker, step - 1);
  }

  /// The first step in which `from` sends to `to`.
  int step_between(int from, int to) const {
    if (rings()) return 0;
    const int a = place_of(from), b = place_of(to);
    if (a == nobody) return 0;
    if (b == nobody) return steps_ - 1;
    return std::countr_zero(static_cast<unsigned>(a ^ b)) + (folds() ? 1 : 0);
  }

 private:
  bool rings() const { return pattern_ == Pattern::ring_allreduce; }
  bool halves() const { return pattern_ == Pattern::halving_allreduce; }
  int rest() const { return workers_ - core_; }
  bool folds() const { return rest() > 0; }
  // Of the first pairs of workers, the first one gives its values to the second one and gets the
  // result back. The others have the places 0 to core - 1, as in MPICH.
  int place_of(int worker) const {
    if (worker >= 2 * rest()) return worker - rest();
    return worker % 2 == 0 ? nobody : worker / 2;
  }

  int worker_at(int place) const { return place < rest() ? 2 * place + 1 : place + rest(); }

  CollectiveStep ring_step(int worker) const {
    return {(worker + 1) % workers_, (worker + workers_ - 1) % workers_, payload_bytes_ / workers_};
  }

  // Halving: half of the payload to the next worker, a quarter over a distance of two, and so on.
  // Then the same way back.
  CollectiveStep exchange_step(int worker, int exchange) const {
    const int place = place_of(worker);
    if (place == nobody) return {};
    const int bit = halves() ? std::min(exchange, 2 * doublings_ - 1 - exchange) : exchange;
    const int partner = worker_at(place ^ (1 << bit));
    return {partner, partner, halves() ? payload_bytes_ / (2 << bit) : payload_bytes_};
  }

  CollectiveStep fold(int worker, bool inwards) const {
    if (worker >= 2 * rest()) return {};
    const int other = worker ^ 1;
    const bool sends = (worker % 2 == 0) == inwards;
    return {sends ? other : nobody, sends ? nobody : other, payload_bytes_};
  }

  Pattern pattern_;
  int workers_;
  double payload_bytes_;
  int core_ = 1;  ///< largest power of two
  int doublings_ = 0;
  int steps_ = 0;
};

}  // namespace fast::simulation
