// The entries of largest magnitude, for rules that send few: begin() and add() in survey, choose()
// in begin_publish, takes() in publish.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace fast::algorithm {

class TopK {
 public:
  /// For so many values, or more.
  void begin(std::size_t count = 0) {
    magnitudes_.clear();
    magnitudes_.reserve(count);
  }
  void add(double value) { magnitudes_.push_back(magnitude(value)); }
  std::size_t count() const { return magnitudes_.size(); }
  /// The `keep` largest of those added. Of equals, those that takes() sees first.
  void choose(std::size_t keep) {
    threshold_ = 0;
    equals_left_ = 0;
    if (keep == 0) return;
    const auto nth = magnitudes_.begin() + static_cast<std::ptrdiff_t>(keep) - 1;
    std::nth_element(magnitudes_.begin(), nth, magnitudes_.end(), std::greater<>());
    threshold_ = *nth;
    equals_left_ = keep - static_cast<std::size_t>(std::count_if(
                              magnitudes_.begin(), nth, [&](double m) { return m > threshold_; }));
  }
  /// To be asked once for each value, in the order of their indices.
  bool takes(double value) {
    const double size = magnitude(value);
    if (size > threshold_) return true;
    if (size != threshold_ || equals_left_ == 0) return false;
    --equals_left_;
    return true;
  }

 private:
  /// NaN counts as the largest: it is to be seen, not kept back.
  static double magnitude(double value) { return std::isnan(value) ? HUGE_VAL : std::abs(value); }

  std::vector<double> magnitudes_;
  double threshold_ = 0;
  std::size_t equals_left_ = 0;
};

}  // namespace fast::algorithm
