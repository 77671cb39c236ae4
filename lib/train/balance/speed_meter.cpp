#include "train/balance/speed_meter.hpp"

#include <algorithm>

namespace fast::train {

void SpeedMeter::add(double seconds, std::size_t samples) {
  if (samples > 0 && seconds > 0 && !is_full())
    of_rounds_.push_back(seconds / static_cast<double>(samples));
}

double SpeedMeter::seconds_per_sample() const {
  if (of_rounds_.empty()) return 0;
  std::vector<double> sorted = of_rounds_;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

}  // namespace fast::train
