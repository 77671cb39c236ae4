#include <cmath>
#include <numeric>

#include "simulation/tally.hpp"

namespace fast::simulation {

// The smallest duration that at least that share of the rounds do not exceed.
double Tally::quantile(double share) {
  const auto rank = std::ceil(share * static_cast<double>(durations_.size())) - 1;
  const auto at = durations_.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
  std::nth_element(durations_.begin(), at, durations_.end());
  return *at;
}

RoundFigures Tally::figures() {
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
  result.median_s = quantile(0.5);
  result.p95_s = quantile(0.95);
  return result;
}

}  // namespace fast::simulation
