// Small random changes to training images that keep their labels.
#pragma once

#include <fast/core/random.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace fast::data {

/// Pad-crop-flip (He et al. 2016, arXiv 1512.03385, section 4.2).
struct Augmentation {
  int padding =
      4;  ///< zeros (the mean color) on each side, of which a crop of the old size is taken
  bool flip = true;  ///< left to right, every other image
};

/// Changes a normalized image of `shape` C×H×W in place, as drawn from `rng`. Throws
/// Error(argument) on another shape and on a negative padding.
void augment(std::span<float> image, const std::vector<std::int64_t>& shape,
             const Augmentation& augmentation, Rng& rng);

}  // namespace fast::data
