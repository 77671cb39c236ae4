#include "measure/step_times.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/median.hpp"

namespace tools {

using namespace fast;

namespace {

constexpr std::size_t most_steps = 200;

double seconds_of(const std::function<void()>& step) {
  const auto began = Clock::now();
  step();
  return std::max(Seconds(Clock::now() - began).count(), 1e-9);
}

}  // namespace

StepTimes time_steps(const std::function<void()>& step, Seconds budget) {
  const double first_s = seconds_of(step);
  if (first_s >= budget.count()) return {first_s, 0};
  std::vector<double> times, deviations;
  for (double sum = 0; sum < budget.count() && times.size() < most_steps; sum += times.back()) {
    times.push_back(seconds_of(step));
  }
  const double usual_s = median(times);
  for (const double each : times) deviations.push_back(std::abs(std::log(each / usual_s)));
  const double mean_s =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  return {mean_s, sigma_of_median_deviation * median(deviations)};
}

}  // namespace tools
