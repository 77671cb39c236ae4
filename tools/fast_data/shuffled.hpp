// Another order of the samples of a data set.
#pragma once

#include <fast/data/dataset.hpp>

#include <cstdint>

namespace fast_data {

/// A function of the number of samples and the seed. Samples are read when they are needed.
fast::data::Dataset shuffled(const fast::data::Dataset& samples, std::uint64_t seed);

}  // namespace fast_data
