// What stands for options that are not set. All throw fast::Error (argument) for options that do
// not fit each other.
#pragma once

#include <fast/nn/optimizer.hpp>
#include <optional>

#include "fast_train/options.hpp"

namespace fast_train {

fast::nn::OptimizerSpec optimizer_of(const Options& o);
/// Of sgd; empty for other optimizers.
std::optional<double> momentum_of(const Options& o);
double learning_rate_of(const Options& o);
/// "sgd, momentum 0.9, weight decay 0.0001".
std::string optimizer_text(const Options& o);
/// Batches made ahead.
int prefetch_of(const Options& o);

/// The same options, with the values of this run where none were set.
Options resolved(Options o);

}  // namespace fast_train
