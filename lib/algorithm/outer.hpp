// What rules share that make an outer step after some local ones.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

/// The weights from which the next local steps start: those of the outer step, or a blend of them
/// and the local weights.
template <class T>
FAST_HOST_DEVICE T blended(double blend, T local, T outer) {
  const T share = static_cast<T>(blend);
  return blend == 0 ? outer : share * local + (1 - share) * outer;
}

}  // namespace fast::algorithm
