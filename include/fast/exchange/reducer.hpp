// The all-reduce that nearest-neighbor exchange is measured against.
#pragma once

#include <span>

namespace fast {

/// Averages vectors over all workers of a group. Every worker calls it with the same count and gets
/// the same bits. Blocks until all workers have called it. Throws Error(deadline), which names a
/// missing worker, or Error(peer_failed) if one has failed.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void average(std::span<float> values) = 0;
  virtual void average(std::span<double> values) = 0;
};

}  // namespace fast
