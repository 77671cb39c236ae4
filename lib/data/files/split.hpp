// Training and test parts of samples that come in one piece.
#pragma once

#include <fast/data/load.hpp>

#include <cstddef>
#include <vector>

namespace fast::data {

/// The first `limit` samples; all if that is 0 or more than there are.
Dataset first_of(const Dataset& samples, std::size_t limit);

/// Samples of a data set in memory, in the order of `indices`, in memory of their own.
Dataset chosen_of(const Dataset& samples, const std::vector<std::size_t>& indices);

/// A share `options.test_share` of the samples, chosen at random by `options.split_seed`, is the
/// test part; both parts keep the samples' order and have at most `options.limit` of them. Throws
/// Error(argument) when a part has none.
Splits split_at_random(const Dataset& samples, const LoadOptions& options);

}  // namespace fast::data
