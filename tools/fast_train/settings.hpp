// What fast-train's options mean to the library. All throw fast::Error (argument) for a value that
// is unknown or out of range.
#pragma once

#include <fast/nn/model_spec.hpp>
#include <fast/train/trainer.hpp>

#include "backends/backends.hpp"
#include "fast_train/options.hpp"

namespace fast_train {

fast::train::TrainerOptions trainer_options(const Options& o);
/// The size that the model is made for, for --resize model. Throws Error(argument) if it takes no
/// images.
fast::data::ImageSize image_size_of_model(const Options& o);
/// With the loss for that data.
fast::nn::ModelSpec model_for(const Options& o, const fast::data::Dataset& data);
/// On the device that the options name.
backends::OnDevice backend_of(const Options& o, const fast::nn::ModelSpec& spec,
                              const fast::Group& group);

}  // namespace fast_train
