// The messages of an all-reduce.
#pragma once

#include <fast/simulation/workload.hpp>

namespace fast::simulation {

inline constexpr int nobody = -1;

/// What one worker does in one step: it sends, and waits for what it receives.
struct CollectiveStep {
  int to = nobody, from = nobody;
  double size_bytes = 0;
};

class Collective {
 public:
  Collective(Pattern pattern, int workers, double payload_bytes);
  int steps() const { return steps_; }
  CollectiveStep at(int worker, int step) const;
  /// The first step in which `from` sends to `to`.
  int step_between(int from, int to) const;

 private:
  bool rings() const { return pattern_ == Pattern::ring_allreduce; }
  bool halves() const { return pattern_ == Pattern::halving_allreduce; }
  int rest() const { return workers_ - core_; }
  bool folds() const { return rest() > 0; }
  int place_of(int worker) const;
  int worker_at(int place) const;
  CollectiveStep ring_step(int worker) const;
  CollectiveStep exchange_step(int worker, int exchange) const;
  CollectiveStep fold(int worker, bool inwards) const;

  Pattern pattern_;
  int workers_;
  double payload_bytes_;
  int core_ = 1;  ///< largest power of two
  int doublings_ = 0;
  int steps_ = 0;
};

}  // namespace fast::simulation
