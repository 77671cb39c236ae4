// The all-reduce that nearest-neighbor exchange is measured against.
#pragma once

#include <span>

namespace fast {

/// Averages vectors over all workers of a group. Every worker calls with the same count; each gets
/// the same bits. Blocks until all have come; Error(deadline) names those that have not,
/// Error(peer_failed) when one failed.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void average(std::span<float> values) = 0;
  virtual void average(std::span<double> values) = 0;
};

}  // namespace fast
