// Where weights come from: a file, a run's directory, or a directory of checkpoints.
#pragma once

#include <fast/core/observer.hpp>

#include <chrono>
#include <condition_variable>
#include <fast/train/safetensors.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fast_serve/served_model.hpp"

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

// Looks for newer models, and installs those that are whole and fit.

/// Each source is looked at in turn. A file that changed is read once it has stayed the same from
/// one look to the next, so that nobody reads what is still being written.
class Reloader {
 public:
  /// Told what became of a newer file: whether it was installed.
  using OnReload = std::function<void(const std::string& model, bool installed)>;

  explicit Reloader(LogSink log, OnReload on_reload = {});

  /// Loads the model that is there now. Throws as ModelSource::load() and ServedModel::install().
  void add(ModelSource source, ServedModel& model, Becomes role = Becomes::newest);

  /// Looks at all sources once. A model that is refused is logged once, and the one before it
  /// stays. A file that cannot be read, as with too many open ones, is tried again.
  void look();

  /// Looks every `period`, from a thread of its own, until the end or stop().
  void start(std::chrono::milliseconds period);
  void stop();

 private:
  struct Watched {
    ModelSource source;
    ServedModel* model;
    Becomes role;
    std::string read{};     ///< fingerprint of what was read last
    std::string seen{};     ///< and of what the last look saw
    std::string trouble{};  ///< and of what could not be read, as was logged
  };
  void look_at(Watched& watched);
  void reload(Watched& watched);

  LogSink log_;
  OnReload on_reload_;
  std::vector<Watched> watched_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace fast::serve
