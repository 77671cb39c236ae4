// Counts the rounds and reads of all workers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fast/simulation/workload.hpp>
#include <numeric>
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

  RoundFigures figures() {
    RoundFigures result;
    result.total_s = end_s_;
    result.mean_s = end_s_ / static_cast<double>(rounds_);
    result.left_out = left_out_;
    result.failures = failures_;
    result.reads = reads_;
    if (reads_ > 0) {
      result.fresh_share = static_cast<double>(fresh_) / static_cast<double>(reads_);
      result.mean_age = ages_ / static_cast<double>(reads_);
    }
    if (durations_.empty()) return result;
    const double busy = std::accumulate(durations_.begin(), durations_.end(), 0.0);
    result.waiting_share = busy > 0 ? waited_s_ / busy : 0;
    result.worker_s = busy / static_cast<double>(durations_.size());
    result.median_s = quantile(0.5);
    result.p95_s = quantile(0.95);
    return result;
  }

 private:
  /// The smallest duration that at least that share of the rounds do not exceed.
  double quantile(double share) {
    const auto rank = std::ceil(share * static_cast<double>(durations_.size())) - 1;
    const auto at = durations_.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
    std::nth_element(durations_.begin(), at, durations_.end());
    return *at;
  }

  std::int64_t rounds_;
  std::vector<double> durations_;
  double waited_s_ = 0, end_s_ = 0, ages_ = 0;
  std::int64_t reads_ = 0, fresh_ = 0, left_out_ = 0, failures_ = 0;
};

}  // namespace fast::simulation
