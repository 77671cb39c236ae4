// A made-up classification task for tests and examples.
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fast::data {

/// Every class has a center drawn from N(0, 1) in each coordinate; a sample is its class's center
/// plus N(0, noise²). Sample i is of class i mod classes. A function of its arguments alone; train
/// and test parts are slices of one data set. With the default noise and 16 values or more a linear
/// model learns it nearly perfectly.
Dataset synthetic_classification(std::size_t samples, std::vector<std::int64_t> sample_shape,
                                 int classes, std::uint64_t seed, double noise = 0.5);

}  // namespace fast::data
