// Samples of NumPy arrays, in the shapes that models take.
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/files/npy.hpp"

namespace fast::data {

/// Samples in the form of a Dataset.
struct NpySamples {
  std::vector<std::int64_t> shape;
  Dataset::Values values;
  std::size_t count = 0;
};

/// The first side counts samples; their shapes are as fast/data/numpy.hpp says. Throws Error(data),
/// which begins with "numpy: NAME", for an array without sides or samples and for values that are
/// not finite.
NpySamples npy_samples(NpyArray array, const std::string& name);

}  // namespace fast::data
