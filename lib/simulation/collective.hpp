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

 private:
  CollectiveStep ring_step(int worker) const;
  CollectiveStep doubling_step(int worker, int step) const;
  CollectiveStep fold(int worker, bool inwards) const;

  Pattern pattern_;
  int workers_;
  double payload_bytes_;
  int core_ = 1;  ///< largest power of two
  int steps_ = 0;
};

}  // namespace fast::simulation
