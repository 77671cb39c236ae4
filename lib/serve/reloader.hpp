// Looks for newer models, and installs those that are whole and fit.
#pragma once

#include <fast/core/log.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serve/model_source.hpp"
#include "serve/served_model.hpp"

namespace fast::serve {

/// Each source is looked at in turn. A file that changed is read once it has stayed the same from
/// one look to the next, so that nobody reads what is still being written.
class Reloader {
 public:
  /// Told what became of a newer file: whether it was installed.
  using OnReload = std::function<void(const std::string& model, bool installed)>;

  explicit Reloader(LogSink log, OnReload on_reload = {});
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

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
