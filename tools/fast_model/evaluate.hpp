// fast-model evaluate: what a saved model gets right on samples with targets.
#pragma once

#include <fast/data/load.hpp>

#include <string>

#include "fast_model/applied_model.hpp"

namespace fast_model {

struct EvaluateOptions {
  std::string model;
  DataChoice data;
  std::string json;  ///< a file for the result; empty: none; "-": standard output, without a table
};

/// Prints loss and measures, those of each class or output, and the confusion matrix of up to 20
/// classes. Measures are those of scikit-learn: a division by 0 gives 0, and classes without
/// samples and predictions do not count in means.
void evaluate(const EvaluateOptions& options, const fast::data::LoadOptions& reading);

}  // namespace fast_model
