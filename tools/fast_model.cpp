// fast-model: looks into saved models and turns them into what other programs read.
#include <fmt/ranges.h>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/onnx.hpp>
#include <fast/train/safetensors.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "saved_model.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/checkpoint/run_directories.hpp"

using namespace fast;

namespace {

constexpr int most_shown = 200;

void warn(LogLevel, std::string_view text) { fast::say("fast-model: {}\n", printable(text)); }

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// What the model is for, and all that it says of itself.
void show_notes(const train::Metadata& metadata, const std::string& source) {
  try {
    if (const serve::Note note = train::model_note(metadata, source))
      fmt::print("{:<32}  {}\n", "task", train::task_text(*note));
  } catch (const Error& error) {
    warn(LogLevel::warning, error.what());
  }
  for (const auto& [name, value] : metadata)
    fmt::print("{:<32}  {}\n", printable(name), printable(value));
}

void show_checkpoint(const train::Manifest& manifest) {
  fmt::print("checkpoint {}\n{} workers, round {}\n", printable(manifest.directory.string()),
             manifest.workers, manifest.round);
  for (int worker = 0; worker < manifest.workers; ++worker) {
    std::string state;
    try {
      state = fmt::format("{} bytes, whole", read_shard(manifest, worker).bytes().size());
    } catch (const Error& error) {
      state = error.what();
    }
    fmt::print("worker {:<4}  {}\n", worker, state);
  }
  show_notes(serve::metadata_of(manifest), manifest.directory.string());
}

/// A run's directory stands for its mean model or, without one, for its newest checkpoint.
std::string source_in(const std::string& path) {
  const std::filesystem::path model = std::filesystem::path(path) / train::mean_model_name;
  const std::filesystem::path checkpoints = std::filesystem::path(path) / "checkpoints";
  std::error_code ignored;
  if (!is_directory(path)) return path;
  if (std::filesystem::exists(model, ignored)) return model.string();
  return is_directory(checkpoints.string()) ? checkpoints.string() : path;
}

void show(const std::string& given) {
  const std::string path = source_in(given);
  if (is_directory(path)) {
    show_checkpoint(train::find_checkpoint(path));
    return;
  }
  if (path != given) fmt::print("{}\n", printable(path));
  const train::Safetensors file(path);
  show_notes(file.metadata(), path);
  std::size_t elements = 0;
  int shown = 0;
  for (const TensorView& view : file.views()) {
    elements += view.element_count();
    if (++shown > most_shown) continue;
    fmt::print("{:<32}  {:<5} [{}]\n", printable(view.name), name(view.dtype),
               fmt::join(view.shape, "x"));
  }
  if (shown > most_shown) fmt::print("... and {} more\n", shown - most_shown);
  fmt::print("{} tensors, {} elements, {} bytes\n", file.tensors().size(), elements,
             file.bytes().size());
}

/// The mean of a checkpoint's workers.
train::OwnedTensors mean_of(const train::Manifest& manifest) {
  std::vector<int> workers;
  for (int worker = 0; worker < manifest.workers; ++worker) workers.push_back(worker);
  return train::average_shards(manifest, workers, train::model_prefix, warn);
}

/// Of a file, or the mean of a checkpoint.
struct Weights {
  std::string source;
  std::optional<train::Safetensors> file{};
  train::OwnedTensors mean{};
  std::vector<TensorView> tensors{};
  train::Metadata metadata{};
};

serve::Note note_of(const Weights& weights) {
  return train::model_note(weights.metadata, weights.source);
}

Weights weights_in_file(const std::string& path) {
  Weights weights{path};
  weights.file.emplace(path);
  weights.tensors = weights.file->views();
  weights.metadata = weights.file->metadata();
  return weights;
}

/// Its place in the run is no part of the model.
Weights weights_in_checkpoint(const std::string& directory) {
  const train::Manifest manifest = train::find_checkpoint(directory);
  Weights weights{directory};
  weights.mean = mean_of(manifest);
  weights.tensors = weights.mean.views;
  weights.metadata = serve::metadata_of(manifest);
  const serve::Note note = note_of(weights);
  weights.metadata = note ? to_metadata(*note) : train::Metadata();
  return weights;
}

/// Of a model file, if one is given. The last tensor with one side is the bias of the outputs.
nn::ModelSpec spec_of(const Weights& weights, const std::string& model) {
  if (model.empty()) return serve::spec_of(note_of(weights), {}, weights.tensors, weights.source);
  std::int64_t outputs = 1;
  for (const TensorView& tensor : weights.tensors)
    if (tensor.name.ends_with(".bias") && tensor.shape.size() == 1) outputs = tensor.shape[0];
  return nn::read_model(model, {{}, outputs});
}

/// "lenet"; "model" where nothing names it.
std::string name_of(const Weights& weights) {
  const serve::Note note = note_of(weights);
  return note && !note->model.empty() ? note->model : "model";
}

void export_model(const std::string& given, const std::string& to, const std::string& model) {
  const std::string from = source_in(given);
  const Weights weights = is_directory(from) ? weights_in_checkpoint(from) : weights_in_file(from);
  const std::filesystem::path target = to;
  nn::OnnxNotes notes;
  if (target.extension() == ".onnx") {
    notes.metadata = {weights.metadata.begin(), weights.metadata.end()};
    if (const serve::Note note = note_of(weights)) {
      notes.mean = note->normalization.mean;
      notes.stddev = note->normalization.stddev;
      notes.origins = note->normalization.origins;
    }
    write_whole(to, nn::to_onnx(spec_of(weights, model), weights.tensors, notes));
  } else if (target.extension() == ".safetensors") {
    train::save_safetensors(target, weights.tensors, weights.metadata);
  } else {
    fail(ErrorKind::argument, "--to {}: its ending names no format; choose .onnx or .safetensors",
         to);
  }
  fmt::print("{}: {}, {} bytes\n", printable(to), printable(name_of(weights)),
             std::filesystem::file_size(target));
  if (!notes.origins.empty())
    fmt::print(
        "its input are 64-bit floats: 32-bit floats cannot tell the values of some features "
        "apart\n");
}

struct Files {
  std::string from, to, model;
};

tools::Command& add_info(tools::Command& program, Files& files) {
  tools::Command& info =
      program.add_command("info", "Shows what is in a safetensors file, a checkpoint or a run.",
                          "fast-model info run/mean-model.safetensors");
  tools::offer(info.add_option("file", files.from,
                               "a safetensors file, a checkpoint's directory, or a run's: its "
                               "mean-model.safetensors or else its newest checkpoint")
                   ->required(),
               {"<file>"});
  return info;
}

tools::Command& add_export(tools::Command& program, Files& files) {
  tools::Command& exported =
      program.add_command("export", "Writes a model for use elsewhere, as ONNX or safetensors.");
  tools::offer(
      exported
          .add_option("file", files.from,
                      "a safetensors file, a run's directory, as for info, or a checkpoint, "
                      "of which the workers' mean is taken")
          ->required(),
      {"<file>"});
  exported.begin_group("Export", "fast-model export run/mean-model.safetensors --to lenet.onnx");
  tools::offer(
      exported.add_option("--to", files.to, "the file to write: .onnx or .safetensors")->required(),
      {"<file>"});
  tools::offer(
      exported.add_option("--model", files.model,
                          "for ONNX, the TOML file of the layers, with the key input; for files "
                          "that do not say what model they are of"),
      {"<file>"});
  return exported;
}

int run(int argc, char** argv) {
  tools::Command program("fast-model",
                         "Looks into saved models and turns them into what other programs read.",
                         "fast-model info run/mean-model.safetensors");
  Files files;
  const tools::Command& info = add_info(program, files);
  const tools::Command& exported = add_export(program, files);
  if (const auto status = tools::parse(program, argc, argv)) return *status;
  if (info.parsed()) show(files.from);
  if (exported.parsed()) export_model(files.from, files.to, files.model);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-model", [&] { return run(argc, argv); });
}
