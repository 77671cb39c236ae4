#include "fast_serve/model_source.hpp"

#include <sys/stat.h>

#include <fast/core/error.hpp>
#include <optional>

#include "core/message.hpp"
#include "saved_model.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/checkpoint/run_directories.hpp"

namespace fast::serve {
namespace {

namespace fs = std::filesystem;

struct Stamp {
  std::int64_t written_ns = 0, size_bytes = 0;
  std::uint64_t number = 0;  ///< of the file, which a new file does not share
};

std::optional<Stamp> stamp_of(const fs::path& file) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return Stamp{std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec,
               found.st_size, found.st_ino};
}

/// The manifest of the newest checkpoint.
std::optional<fs::path> newest_manifest(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) return std::nullopt;
  try {
    return train::find_checkpoint(directory).directory / "manifest.json";
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Of a path without a file of weights; empty: reading it tells more.
std::string why_not_model(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "there is no such file or directory";
  if (!fs::is_directory(path, ignored)) return {};
  return fmt::format("it has neither a {} nor a whole checkpoint", train::mean_model_name);
}

}  // namespace

/// The file that is read, and whether it is the manifest of a checkpoint.
struct ModelSource::Newest {
  fs::path file;
  bool is_checkpoint = false;
  std::optional<Stamp> stamp{};
};

ModelSource::ModelSource(fs::path path, AssumedNote assumed)
    : path_(std::move(path)), assumed_(std::move(assumed)) {}

ModelSource::Newest ModelSource::newest() const {
  std::error_code ignored;
  if (!fs::is_directory(path_, ignored)) return {path_, false, stamp_of(path_)};
  Newest best{path_ / train::mean_model_name, false, stamp_of(path_ / train::mean_model_name)};
  for (const fs::path& place : {path_, path_ / "checkpoints"}) {
    const auto manifest = newest_manifest(place);
    const auto stamp = manifest ? stamp_of(*manifest) : std::nullopt;
    if (stamp && (!best.stamp || stamp->written_ns > best.stamp->written_ns)) {
      best = {*manifest, true, stamp};
    }
  }
  return best;
}

std::string ModelSource::fingerprint() const {
  const Newest found = newest();
  if (!found.stamp) return {};
  return fmt::format("{} {} {} {}", found.file.string(), found.stamp->written_ns,
                     found.stamp->size_bytes, found.stamp->number);
}

std::shared_ptr<const ModelVersion> ModelSource::load() const {
  const Newest found = newest();
  if (const std::string why = found.stamp ? "" : why_not_model(path_); !why.empty()) {
    fail(ErrorKind::data,
         "{}: {}; give a file of weights or the directory of a run (fast-train --out)",
         printable(path_.string()), why);
  }
  return found.is_checkpoint ? load_checkpoint(found.file.parent_path()) : load_file(found.file);
}

std::shared_ptr<const ModelVersion> ModelSource::load_file(const fs::path& file) const {
  const train::Safetensors stored(file);
  return version_of(stored.views(), stored.metadata(), file.string());
}

std::shared_ptr<const ModelVersion> ModelSource::load_checkpoint(const fs::path& directory) const {
  const train::Manifest manifest = train::read_manifest(directory);
  std::vector<int> workers;
  for (int worker = 0; worker < manifest.workers; ++worker) workers.push_back(worker);
  const train::OwnedTensors mean = average_shards(manifest, workers, train::model_prefix);
  return version_of(mean.views, metadata_of(manifest), directory.string());
}

std::shared_ptr<const ModelVersion> ModelSource::version_of(const std::vector<TensorView>& tensors,
                                                            const train::Metadata& metadata,
                                                            const std::string& source) const {
  const Note note = train::model_note(metadata, source);
  const nn::ModelSpec spec = spec_of(note, assumed_.model, tensors, source);
  return std::make_shared<ModelVersion>(
      spec, note ? note->input : spec.input, tensors,
      note ? Normalizing(note->normalization) : assumed_.normalizing, source, loss_of(note, source),
      note ? Names{note->class_names, note->features, note->target} : Names{});
}

namespace {

/// Others, as too many open files, may pass: the next look tries again.
bool is_of_content(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known != nullptr && known->kind() != ErrorKind::resource;
}

}  // namespace

Reloader::Reloader(LogSink log, OnReload on_reload)
    : log_(std::move(log)), on_reload_(std::move(on_reload)) {}

void Reloader::add(ModelSource source, ServedModel& model, Becomes role) {
  Watched watched{std::move(source), &model, role};
  watched.read = watched.seen = watched.source.fingerprint();
  model.install(watched.source.load(), role);
  watched_.push_back(std::move(watched));
}

void Reloader::look() {
  for (Watched& watched : watched_) look_at(watched);
}

void Reloader::look_at(Watched& watched) {
  std::string found = watched.source.fingerprint();
  const bool is_new = !found.empty() && found != watched.read;
  const bool is_settled = found == watched.seen;
  watched.seen = std::move(found);
  if (is_new && is_settled) reload(watched);
}

void Reloader::reload(Watched& watched) {
  const std::string& model = watched.model->name();
  try {
    auto version = watched.source.load();
    if (watched.source.fingerprint() != watched.seen)
      return;  // written to meanwhile: the next look
    watched.read = watched.seen;
    const std::string hash = version->hash(), source = version->source();
    if (!watched.model->install(std::move(version), watched.role)) return;
    log_(LogLevel::info, fmt::format("{}: version {} from {}", model, hash, source));
    if (on_reload_) on_reload_(model, true);
  } catch (const std::exception& error) {
    if (watched.source.fingerprint() != watched.seen) return;
    const bool is_final = is_of_content(error);
    if (is_final) watched.read = watched.seen;
    if (!is_final && watched.trouble == watched.seen) return;
    watched.trouble = watched.seen;
    log_(LogLevel::warning, fmt::format("{}: {}, the version before it goes on: {}", model,
                                        is_final ? "refused" : "not read yet", message_of(error)));
    if (on_reload_ && is_final) on_reload_(model, false);
  }
}

void Reloader::start(std::chrono::milliseconds period) {
  thread_ = std::jthread([this, period](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, stop, period, [] { return false; }) && !stop.stop_requested()) {
      look();
    }
  });
}

void Reloader::stop() { thread_ = {}; }

}  // namespace fast::serve
