// Saved weights, and the model that they belong to, as their note says.
#pragma once

#include <fast/core/observer.hpp>
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

/// A run's directory stands for its mean model or, without one, for its newest checkpoint.
/// Throws Error(data) if nothing has this path.
std::string source_in(const std::string& path);

/// The checkpoint that `path` is or has. Throws Error(data) if there is none that is whole.
train::Manifest manifest_in(const std::string& path);

/// Of a file, or the mean of a checkpoint's workers.
struct Weights {
  std::string source;
  std::optional<train::Safetensors> file{};
  train::OwnedTensors mean{};
  std::vector<TensorView> tensors{};  ///< valid as long as this object, and where it is moved to
  train::Metadata metadata{};         ///< of a checkpoint: the note alone
};

/// Of a file, a run's directory, or a checkpoint, whose files that cannot be read are logged.
/// Throws Error(data), with the file and what is wrong.
Weights read_weights(const std::string& path, const LogSink& log);

Note note_of(const Weights& weights);

/// Throws Error(data), which begins with `source`, for an unknown loss.
nn::Loss loss_of(const Note& note, const std::string& source);

/// The layers of the note, or the model that it names. Where the note names none: the model
/// `assumed`, a name of nn::model_by_name(), or if that is empty the model that is recognized by
/// its tensors. Throws Error(data), which begins with `source`.
nn::ModelSpec spec_of(const Note& note, const std::string& assumed,
                      const std::vector<TensorView>& tensors, const std::string& source);

}  // namespace fast::serve
