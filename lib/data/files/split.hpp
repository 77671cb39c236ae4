// Training and test parts of samples that come in one piece.
#pragma once

#include <fast/data/load.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fast::data {

/// Of samples that are read for predictions.
inline Targets no_targets(std::size_t samples) { return {std::vector<float>(samples), {}, 0}; }

/// The first `limit` samples; all if that is 0 or more than there are.
Dataset first_of(const Dataset& samples, std::size_t limit);

/// What a model learns of these samples, in the order of `indices`.
Targets chosen_targets(const Dataset& samples, const std::vector<std::size_t>& indices);

/// Samples in the order of `indices`, in memory of their own. Those that are streamed ascend, and
/// are read later.
Dataset chosen_of(const Dataset& samples, const std::vector<std::size_t>& indices);

/// A share `options.test_share` of the samples, chosen at random by `options.split_seed`, is the
/// test part. Both parts have the drawn order, and at most `options.limit` samples. Throws
/// Error(argument) when a part has none. With `options.stratify`, each class gives that share, as
/// in hold_out(). To use a model, without a share: all are the test part.
Splits split_at_random(const Dataset& samples, const LoadOptions& options);

struct HeldOut {
  Dataset rest, held_out;
};
/// Holds out that share of the samples, rounded up, drawn by `seed`. Both parts keep the samples'
/// order and share their storage. If samples have one class label each, every class gives the same
/// share, rounded to whole samples, and keeps at least one sample as long as other classes can give
/// more.
HeldOut hold_out(const Dataset& samples, double share, std::uint64_t seed);

}  // namespace fast::data
