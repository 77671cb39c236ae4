#include "serve/model_source.hpp"

#include <sys/stat.h>

#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_file.hpp>
#include <fast/nn/onnx.hpp>
#include <fast/train/checkpoint.hpp>
#include <fast/train/model_note.hpp>
#include <optional>

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

std::vector<TensorView> views_in(const train::Safetensors& file) {
  std::vector<TensorView> views;
  for (const train::StoredTensor& tensor : file.tensors()) {
    void* data = const_cast<std::byte*>(file.data(tensor).data());
    views.push_back({tensor.name, data, tensor.shape, tensor.dtype, Role::parameter, {}});
  }
  return views;
}

/// What the first worker's file says about the model, whose files agree.
train::Metadata metadata_of(const train::Manifest& manifest) {
  for (const train::WorkerFile& shard : manifest.shards) {
    try {
      return read_shard(manifest, shard.worker).metadata();
    } catch (const Error&) {  // average_shards() leaves it out as well
    }
  }
  return {};
}

nn::Loss loss_named(const std::string& name, const std::string& source) {
  if (name.empty()) return nn::Loss::cross_entropy;
  const std::optional<nn::Loss> loss = nn::loss_by_name(name);
  require(loss.has_value(), ErrorKind::data, "{}: its metadata has the unknown loss \"{}\"",
          printable(source), printable(name));
  return *loss;
}

/// The length of the last dense layer's bias.
std::int64_t classes_in(const std::vector<TensorView>& tensors) {
  std::int64_t classes = 1;
  for (const TensorView& view : tensors) {
    const bool is_bias = view.name.starts_with("fc") && view.name.ends_with(".bias");
    if (is_bias && view.shape.size() == 1 && view.shape[0] > 0) classes = view.shape[0];
  }
  return classes;
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
  std::error_code ignored;
  if (!found.stamp && fs::is_directory(path_, ignored)) {
    fail(ErrorKind::data,
         "{}: it has neither a {} nor a whole checkpoint; give a file of weights or the directory "
         "of a run (fast-train --out)",
         printable(path_.string()), train::mean_model_name);
  }
  return found.is_checkpoint ? load_checkpoint(found.file.parent_path()) : load_file(found.file);
}

std::shared_ptr<const ModelVersion> ModelSource::load_file(const fs::path& file) const {
  const train::Safetensors stored(file);
  return version_of(views_in(stored), stored.metadata(), file.string());
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
  const auto note = train::model_note(metadata, source);
  const std::string name = note && !note->model.empty() ? note->model : assumed_.model;
  const nn::Loss loss = note ? loss_named(note->loss, source) : nn::Loss::cross_entropy;
  nn::ModelSpec spec;
  try {
    const bool labels = note && loss == nn::Loss::cross_entropy;
    const std::int64_t outputs = labels ? note->classes : classes_in(tensors);
    const nn::Shape sample = note ? note->input : nn::Shape();
    if (note && !note->layers.empty()) {
      spec = nn::parse_model(note->layers, name, {sample, outputs});
    } else {
      spec = name.empty() ? nn::recognize(tensors) : nn::model_by_name(name, outputs, sample);
    }
  } catch (const std::exception& error) {
    fail(ErrorKind::data, "{}: {}", printable(source), error.what());
  }
  return std::make_shared<ModelVersion>(
      spec, note ? note->input : spec.input, tensors,
      note ? Normalizing(note->normalization) : assumed_.normalizing, source, loss);
}

}  // namespace fast::serve
