// Samples that come from a stream, for fast-train.
#pragma once

#include <fast/core/observer.hpp>
#include <fast/data/load.hpp>
#include <fast/data/sample_stream.hpp>
#include <fast/nn/model_spec.hpp>

#include <memory>
#include <string>
#include <vector>

#include "fast_train/options.hpp"

namespace fast_train {

/// Throws Error(argument) when an option is missing that a stream needs.
void check_stream(const Options& o);

/// Of the address: a password that lists of processes show, a secret's file that others may read.
std::vector<std::string> stream_notices(const Options& o);

/// What --data says, without user and password.
std::string shown_data(const Options& o);

/// The test part and the normalization of `tested`, which --test-data names, and a training part
/// that says what the samples of the stream are.
fast::data::Splits stream_splits(const Options& o, fast::data::Splits tested);

/// A connection of this worker. Throws Error(resource) when there is none, and Error(data) when the
/// stream has samples of another form. Of the model `spec` it takes the number of tokens.
std::shared_ptr<fast::data::SampleStream> open_stream(const Options& o,
                                                      const fast::data::Dataset& form, int worker,
                                                      const fast::LogSink& log,
                                                      const fast::nn::ModelSpec& spec);

}  // namespace fast_train
