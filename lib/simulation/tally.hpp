// Counts the rounds and reads of all workers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fast/simulation/workload.hpp>
#include <vector>

namespace fast::simulation {

class Tally {
 public:
  explicit Tally(std::int64_t rounds) : rounds_(rounds) {}

  void round(double begin_s, double end_s, double waited_s) {
    durations_.push_back(end_s - begin_s);
    waited_s_ += waited_s;
    end_s_ = std::max(end_s_, end_s);
  }
  /// A read of a publication that is so many rounds older than its reader; newer ones count as
  /// fresh.
  void read(std::int64_t age) {
    ++reads_;
    fresh_ += age <= 0 ? 1 : 0;
    ages_ += static_cast<double>(std::max<std::int64_t>(age, 0));
  }
  void left_out() { ++left_out_; }
  void failure() { ++failures_; }

  RoundFigures figures();

 private:
  double quantile(double share);

  std::int64_t rounds_;
  std::vector<double> durations_;
  double waited_s_ = 0, end_s_ = 0, ages_ = 0;
  std::int64_t reads_ = 0, fresh_ = 0, left_out_ = 0, failures_ = 0;
};

}  // namespace fast::simulation
