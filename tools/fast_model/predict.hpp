// fast-model predict: the answers of a saved model, as a table.
#pragma once

#include <fast/data/load.hpp>

#include <string>

#include "fast_model/applied_model.hpp"

namespace fast_model {

struct PredictOptions {
  std::string model;
  DataChoice data;
  std::string to = "-";  ///< a CSV file; "-": standard output
};

/// Writes a row a sample: its number or file, then its label and the probabilities of all classes,
/// or the values. They are those of fast-serve for as many samples in a pass, with as many digits
/// as tell a float32 from all others.
void predict(const PredictOptions& options, const fast::data::LoadOptions& reading);

}  // namespace fast_model
