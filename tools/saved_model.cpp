#include "saved_model.hpp"

#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/onnx.hpp>

#include <filesystem>

#include "core/message.hpp"
#include "train/checkpoint/run_directories.hpp"

namespace fast::serve {
namespace {

/// The length of the last dense layer's bias.
std::int64_t classes_in(const std::vector<TensorView>& tensors) {
  std::int64_t classes = 1;
  for (const TensorView& view : tensors) {
    const bool is_bias = view.name.starts_with("fc") && view.name.ends_with(".bias");
    if (is_bias && view.shape.size() == 1 && view.shape[0] > 0) classes = view.shape[0];
  }
  return classes;
}

nn::ModelSpec spec_named(const std::string& name, const Note& note, std::int64_t outputs,
                         const std::vector<TensorView>& tensors) {
  const nn::Shape sample = note ? note->input : nn::Shape();
  if (note && !note->layers.empty()) return nn::parse_model(note->layers, name, {sample, outputs});
  return name.empty() ? nn::recognize(tensors) : nn::model_by_name(name, outputs, sample);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

std::string source_in(const std::string& path) {
  const std::filesystem::path model = std::filesystem::path(path) / train::mean_model_name;
  const std::filesystem::path checkpoints = std::filesystem::path(path) / "checkpoints";
  std::error_code ignored;
  require(std::filesystem::status(path, ignored).type() != std::filesystem::file_type::not_found,
          ErrorKind::data,
          "{}: there is no such file or directory; give the directory of a run, a safetensors file "
          "or a checkpoint",
          printable(path));
  if (!is_folder(path)) return path;
  if (std::filesystem::exists(model, ignored)) return model.string();
  return is_folder(checkpoints) ? checkpoints.string() : path;
}

train::Manifest manifest_in(const std::string& path) try {
  return train::find_checkpoint(source_in(path));
} catch (const Error& error) {
  fail(error.kind(), "{} ({} has no {} either)", error.what(), printable(path),
       train::mean_model_name);
}

Note note_of(const Weights& weights) { return train::model_note(weights.metadata, weights.source); }

/// Its place in the run is no part of the model.
Weights read_weights(const std::string& path, const LogSink& log) {
  Weights weights{source_in(path)};
  if (!is_folder(weights.source)) {
    weights.file.emplace(weights.source);
    weights.tensors = weights.file->views();
    weights.metadata = weights.file->metadata();
    return weights;
  }
  const train::Manifest manifest = manifest_in(path);
  std::vector<int> workers;
  for (int worker = 0; worker < manifest.workers; ++worker) workers.push_back(worker);
  weights.mean = train::average_shards(manifest, workers, train::model_prefix, log);
  weights.tensors = weights.mean.views;
  weights.metadata = metadata_of(manifest);
  const Note note = note_of(weights);
  weights.metadata = note ? to_metadata(*note) : train::Metadata();
  return weights;
}

train::Metadata metadata_of(const train::Manifest& manifest) {
  for (const train::WorkerFile& shard : manifest.shards) {
    try {
      return read_shard(manifest, shard.worker).metadata();
    } catch (const Error&) {  // average_shards() leaves it out as well
    }
  }
  return {};
}

nn::Loss loss_of(const Note& note, const std::string& source) {
  if (!note || note->loss.empty()) return nn::Loss::cross_entropy;
  const std::optional<nn::Loss> loss = nn::loss_by_name(note->loss);
  require(loss.has_value(), ErrorKind::data, "{}: its metadata has the unknown loss \"{}\"",
          printable(source), printable(note->loss));
  return *loss;
}

nn::ModelSpec spec_of(const Note& note, const std::string& assumed,
                      const std::vector<TensorView>& tensors, const std::string& source) {
  const std::string name = note && !note->model.empty() ? note->model : assumed;
  const bool labels = note && loss_of(note, source) == nn::Loss::cross_entropy;
  try {
    return spec_named(name, note, labels ? note->classes : classes_in(tensors), tensors);
  } catch (const std::exception& error) {
    fail(ErrorKind::data, "{}: {}", printable(source), error.what());
  }
}

}  // namespace fast::serve
