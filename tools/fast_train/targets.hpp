// Whether a loss can learn the targets of a data set.
#pragma once

#include <fast/data/load.hpp>
#include <fast/nn/loss.hpp>
#include <string>
#include <vector>

namespace fast_train {

/// Throws Error(argument), naming `from`, if binary_cross_entropy is to learn a float target that
/// is not from 0 to 1.
void check_targets(const fast::data::Splits& data, fast::nn::Loss loss, const std::string& from);

/// --class-weights for labels of the training part; empty text: none. "balanced" gives a class that
/// has no samples the weight 1. Throws Error(argument).
std::vector<double> class_weights_of(const std::string& text, const fast::data::Dataset& train);

/// A warning for float targets with a root mean square above 10 and a loss of differences (mse,
/// huber): training then diverges, or learns slowly, without --scale-targets. Empty if there is
/// nothing to warn of.
std::string warning_of_targets(const fast::data::Dataset& train, fast::nn::Loss loss);

}  // namespace fast_train
