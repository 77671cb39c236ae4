// fast-model: looks into saved models and turns them into what other programs read.
#include <fmt/ranges.h>
#include <algorithm>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/nn/model_file.hpp>
#include <fast/nn/onnx.hpp>
#include <fast/train/checkpoint.hpp>
#include <fast/train/safetensors.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

using namespace fast;

namespace {

constexpr int most_shown = 200;

/// The parameters and buffers of a file, in its memory.
std::vector<TensorView> views_of(const train::Safetensors& file) {
  std::vector<TensorView> views;
  for (const train::StoredTensor& tensor : file.tensors()) {
    void* data = const_cast<std::byte*>(file.data(tensor).data());
    views.push_back({tensor.name, data, tensor.shape, tensor.dtype, Role::parameter, {}});
  }
  return views;
}

void warn(LogLevel, std::string_view text) {
  fmt::print(stderr, "fast-model: {}\n", printable(text));
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
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
}

void show(const std::string& path) {
  if (is_directory(path)) {
    show_checkpoint(train::find_checkpoint(path));
    return;
  }
  const train::Safetensors file(path);
  for (const auto& [name, value] : file.metadata())
    fmt::print("{:<32}  {}\n", printable(name), printable(value));
  std::size_t elements = 0;
  int shown = 0;
  for (const TensorView& view : views_of(file)) {
    elements += view.element_count();
    if (++shown > most_shown) continue;
    fmt::print("{:<32}  {:<5} [{}]\n", printable(view.name), name(view.dtype),
               fmt::join(view.shape, "x"));
  }
  if (shown > most_shown) fmt::print("... and {} more\n", shown - most_shown);
  fmt::print("{} tensors, {} elements, {} bytes\n", file.tensors().size(), elements,
             file.bytes().size());
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes << std::flush;
  require(out.good(), ErrorKind::resource, "{} cannot be written; choose another file", path);
}

/// The mean of a checkpoint's workers.
train::OwnedTensors mean_of(const std::string& directory) {
  const train::Manifest manifest = train::find_checkpoint(directory);
  std::vector<int> workers;
  for (int worker = 0; worker < manifest.workers; ++worker) workers.push_back(worker);
  return train::average_shards(manifest, workers, train::model_prefix, warn);
}

/// Of a model file, if one is given. The last tensor with one side is the bias of the outputs.
nn::ModelSpec spec_of(const std::vector<TensorView>& tensors, const std::string& model) {
  if (model.empty()) return nn::recognize(tensors);
  std::int64_t outputs = 1;
  for (const TensorView& tensor : tensors)
    if (tensor.name.ends_with(".bias") && tensor.shape.size() == 1) outputs = tensor.shape[0];
  return nn::read_model(model, {{}, outputs});
}

void export_model(const std::string& from, const std::string& to, const std::string& model) {
  std::optional<train::Safetensors> file;
  train::OwnedTensors mean;
  if (is_directory(from)) {
    mean = mean_of(from);
  } else {
    file.emplace(from);
  }
  const std::vector<TensorView> tensors = file ? views_of(*file) : mean.views;
  const std::filesystem::path target = to;
  if (target.extension() == ".onnx") {
    write(to, nn::to_onnx(spec_of(tensors, model), tensors));
  } else if (target.extension() == ".safetensors") {
    train::save_safetensors(target, tensors, file ? file->metadata() : train::Metadata{});
  } else {
    fail(ErrorKind::argument, "--to {}: its ending names no format; choose .onnx or .safetensors",
         to);
  }
}

struct Files {
  std::string from, to, model;
};

tools::Command& add_info(tools::Command& program, Files& files) {
  tools::Command& info =
      program.add_command("info", "Shows what is in a safetensors file or a checkpoint.",
                          "fast-model info run/mean-model.safetensors");
  tools::offer(info.add_option("file", files.from, "a safetensors file or a checkpoint's directory")
                   ->required(),
               {"<file>"});
  return info;
}

tools::Command& add_export(tools::Command& program, Files& files) {
  tools::Command& exported =
      program.add_command("export",
                          "Writes a model for use elsewhere: lenet, resnet20, mlp and lstm as "
                          "ONNX, any as safetensors.");
  tools::offer(exported
                   .add_option("file", files.from,
                               "a safetensors file (mean-model.safetensors) or a checkpoint, of "
                               "which the workers' mean is taken")
                   ->required(),
               {"<file>"});
  exported.begin_group("Export", "fast-model export run/mean-model.safetensors --to lenet.onnx");
  tools::offer(
      exported.add_option("--to", files.to, "the file to write: .onnx or .safetensors")->required(),
      {"<file>"});
  tools::offer(
      exported.add_option("--model", files.model,
                          "for ONNX, the TOML file of the model's layers, with the key input"),
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

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (const std::exception& error) {
  fmt::print(stderr, "fast-model: {}\n", message_of(error));
  return 1;
}
