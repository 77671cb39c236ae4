// Which numbers are class labels.
#pragma once

#include <cmath>

namespace fast::data {

constexpr double most_classes = 1 << 24;
/// TargetKind::automatic takes larger numbers for targets.
constexpr double most_automatic_classes = 1000;

/// A whole number from 0 on, below `limit`.
inline bool is_class(double number, double limit = most_classes) {
  return number >= 0 && number < limit && number == std::floor(number);
}

}  // namespace fast::data
