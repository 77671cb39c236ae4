// How long a worker takes for a sample.
#pragma once

#include <cstddef>
#include <vector>

namespace fast::train {

/// The median over the first rounds: a pause in some of them does not count.
class SpeedMeter {
 public:
  explicit SpeedMeter(std::size_t rounds) : rounds_(rounds) {}

  /// A round that has computed for so long, waits for other workers left out.
  void add(double seconds, std::size_t samples);
  bool is_full() const { return of_rounds_.size() >= rounds_; }
  double seconds_per_sample() const;  ///< 0 before the first round
  void restart() { of_rounds_.clear(); }

 private:
  std::size_t rounds_;
  std::vector<double> of_rounds_;  ///< seconds per sample
};

}  // namespace fast::train
