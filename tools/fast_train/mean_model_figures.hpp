// The figures of the mean model, as a run of its own in TensorBoard.
#pragma once

#include <fast/core/observer.hpp>

#include <memory>

namespace fast_train {

/// Passes on scalars and values that are about the mean model, without that word in their names:
/// "test/mean_model_accuracy" becomes "test/accuracy". Also the consensus distance.
std::shared_ptr<fast::Observer> mean_model_figures(std::shared_ptr<fast::Observer> to);

}  // namespace fast_train
