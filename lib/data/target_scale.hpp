// Float targets of mean 0 and standard deviation 1, as losses of differences learn them best.
#pragma once

#include <fast/data/load.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fast::data {

/// Scales the targets of both parts by the moments of the training part, which the normalization
/// gets. A constant target gets the standard deviation 1. Throws Error(argument) for labels, and
/// Error(data) for moments that 32-bit floats cannot hold; both begin with `from`.
void scale_targets(Splits& splits, const std::string& from);

/// Outputs of a model in the units of the data, row-major, in place. Nothing where targets were not
/// scaled.
void to_units_of_data(const Normalization& normalization, std::span<float> outputs);

/// Numbers in the units of the data, as training sees them.
std::vector<float> scaled(const Normalization& normalization, std::span<const float> numbers);

/// Throws Error(data), which begins with `from`, for another number of targets than outputs.
void check_scale(const Normalization& normalization, std::int64_t outputs, const std::string& from);

}  // namespace fast::data
