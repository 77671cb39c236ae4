// The model that saved weights belong to, as their note says.
#pragma once

#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/train/model_metadata.hpp>

#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.hpp"

namespace fast::serve {

/// A missing one means that the weights do not say it.
using Note = std::optional<train::ModelMetadata>;

/// Of the first worker's file that can be read; the notes of all files agree.
train::Metadata metadata_of(const train::Manifest& manifest);

/// Throws Error(data), which begins with `source`, for an unknown loss.
nn::Loss loss_of(const Note& note, const std::string& source);

/// The layers of the note, or the model that it names. Where the note names none: the model
/// `assumed`, a name of nn::model_by_name(), or if that is empty the model that is recognized by
/// its tensors. Throws Error(data), which begins with `source`.
nn::ModelSpec spec_of(const Note& note, const std::string& assumed,
                      const std::vector<TensorView>& tensors, const std::string& source);

}  // namespace fast::serve
