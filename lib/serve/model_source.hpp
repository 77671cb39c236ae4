// Where weights come from: a file, a run's directory, or a directory of checkpoints.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "serve/model_version.hpp"

namespace fast::serve {

/// For files that do not say it themselves.
struct AssumedNote {
  std::string model;  ///< a name of nn::model_by_name(); empty: recognized by its tensors
  Normalizing normalizing;
};

/// A directory's newest model is its mean-model.safetensors or the mean of the workers in its
/// newest checkpoint, whichever was written last.
class ModelSource {
 public:
  ModelSource(std::filesystem::path path, AssumedNote assumed);

  const std::filesystem::path& path() const { return path_; }

  /// Differs whenever the newest model's file is another one or was written to; empty: there is
  /// none.
  std::string fingerprint() const;

  /// Reads the newest model. Throws Error(data) or Error(argument), with the file and what is
  /// wrong.
  std::shared_ptr<const ModelVersion> load() const;

 private:
  struct Newest;

  Newest newest() const;
  std::shared_ptr<const ModelVersion> load_file(const std::filesystem::path& file) const;
  std::shared_ptr<const ModelVersion> load_checkpoint(const std::filesystem::path& directory) const;
  std::shared_ptr<const ModelVersion> version_of(const std::vector<TensorView>& tensors,
                                                 const train::Metadata& metadata,
                                                 const std::string& source) const;

  std::filesystem::path path_;
  AssumedNote assumed_;
};

}  // namespace fast::serve
