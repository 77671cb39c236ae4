// In which rounds the workers of a run may become more.
#pragma once

#include <cstdint>
#include <limits>

namespace fast {

/// The rounds before which the workers of a run may become more: `first`, `first` + `every`, and so
/// on. A program whose data are divided anew in each epoch takes the beginnings of epochs.
struct GrowthRounds {
  std::int64_t first = 0;
  std::int64_t every = 1;
  std::int64_t before = std::numeric_limits<std::int64_t>::max();  ///< not from this round on
};

}  // namespace fast
