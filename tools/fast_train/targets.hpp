// Whether a loss can learn the targets of a data set.
#pragma once

#include <fast/data/load.hpp>
#include <fast/nn/loss.hpp>
#include <string>

namespace fast_train {

/// Throws Error(argument), naming `from`, if binary_cross_entropy is to learn a float target that
/// is not from 0 to 1.
void check_targets(const fast::data::Splits& data, fast::nn::Loss loss, const std::string& from);

/// A warning for float targets with a root mean square above 10 and a loss of differences (mse,
/// huber): training then diverges, or learns slowly. Targets are not scaled, as features are. Empty
/// if there is nothing to warn of.
std::string warning_of_targets(const fast::data::Dataset& train, fast::nn::Loss loss);

}  // namespace fast_train
