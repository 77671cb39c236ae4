// fast-model: looks into saved models, tests them, and turns them into what other programs read.
#include <fmt/ranges.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>

#include <algorithm>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/onnx.hpp>
#include <fast/train/safetensors.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "data/options/rows.hpp"
#include "fast_model/evaluate.hpp"
#include "fast_model/predict.hpp"
#include "nn/shape.hpp"
#include "options/option_table.hpp"
#include "saved_model.hpp"
#include "train/checkpoint/checkpoint.hpp"

using namespace fast;
namespace tbb = oneapi::tbb;

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

void show(const std::string& given) {
  const std::string path = serve::source_in(given);
  if (is_directory(path)) {
    show_checkpoint(serve::manifest_in(given));
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

/// Of a model file, if one is given. The last tensor with one side is the bias of the outputs.
nn::ModelSpec spec_of(const serve::Weights& weights, const std::string& model) {
  if (model.empty())
    return serve::spec_of(serve::note_of(weights), {}, weights.tensors, weights.source);
  std::int64_t outputs = 1;
  for (const TensorView& tensor : weights.tensors)
    if (tensor.name.ends_with(".bias") && tensor.shape.size() == 1) outputs = tensor.shape[0];
  return nn::read_model(model, {{}, outputs});
}

/// "lenet"; "model" where nothing names it.
std::string name_of(const serve::Weights& weights) {
  const serve::Note note = serve::note_of(weights);
  return note && !note->model.empty() ? note->model : "model";
}

void export_model(const std::string& given, const std::string& to, const std::string& model) {
  const serve::Weights weights = serve::read_weights(given, warn);
  const std::filesystem::path target = to;
  nn::OnnxNotes notes;
  if (target.extension() == ".onnx") {
    notes.metadata = {weights.metadata.begin(), weights.metadata.end()};
    if (const serve::Note note = serve::note_of(weights)) {
      notes.mean = note->normalization.mean;
      notes.stddev = note->normalization.stddev;
      notes.origins = note->normalization.origins;
      notes.target_mean = note->normalization.target_mean;
      notes.target_stddev = note->normalization.target_stddev;
    }
    const nn::ModelSpec spec = spec_of(weights, model);
    if (nn::tokens_of(spec) > 0) notes.mean = notes.stddev = {};  // the input are the tokens
    write_whole(to, nn::to_onnx(spec, weights.tensors, notes));
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

/// Of "fast-model COMMAND run --data DATA".
void add_model_and_data(tools::Command& command, std::string& model, fast_model::DataChoice& data,
                        int& threads, const std::string& title, const std::string& example) {
  tools::offer(
      command
          .add_option("run", model, "the directory of a run, a safetensors file or a checkpoint")
          ->required(),
      {"<file>"});
  command.begin_group(title, example);
  tools::offer(
      command
          .add_option("--data", data.data,
                      "samples, as fast-train --data takes them; folders of images need no "
                      "folder train")
          ->required(),
      {"digits", "fashion-mnist", "<file>"});
  tools::restrict(command.add_option("--part", data.part, "of data with two parts: test or train"),
                  {"test", "train"});
  tools::restrict<int>(command.add_option("--threads", threads, "most cores to compute on; 0: all"),
                       options::zero_or_more());
}

/// What the model says of its data stands for the rest.
void change_rows(options::OptionTable& table) {
  for (const char* of_model : {"classes", "target_type", "stream", "categories"})
    table.at(of_model).internal();
  table.at("target").help =
      "the targets: a column of FILE.csv [the model's], an array of FILE.npz, a file beside "
      "FILE.npy, a name in KEY.json of tar shards [label]";
  table.at("features").help =
      "columns of FILE.csv in the model's order, with commas between them [the model's], or an "
      "array of FILE.npz";
  table.at("test_data").help =
      "the test part: a CSV file with the same columns, or the pattern of its shards";
  table.at("resize").help =
      "size that all images get, by bilinear interpolation: ROWSxCOLUMNS, or model: that of the "
      "model";
  table.at("test_share").help =
      "share of a CSV or NumPy file, or of folders of images, that is the test part, as in "
      "training; without it, the whole "
      "file";
}

tools::Command& add_evaluate(tools::Command& program, fast_model::EvaluateOptions& o,
                             int& threads) {
  tools::Command& command = program.add_command(
      "evaluate",
      "Tests a model: accuracy, precision, recall, F1, confusion matrix; or MAE, RMSE, "
      "R2.");
  add_model_and_data(command, o.model, o.data, threads, "Evaluation",
                     "fast-model evaluate run --data digits --json scores.json");
  tools::offer(
      command.add_option("--json", o.json,
                         "file for the result as JSON; -: standard output, without tables"),
      {"<file>"});
  return command;
}

tools::Command& add_predict(tools::Command& program, fast_model::PredictOptions& o, int& threads) {
  tools::Command& command = program.add_command(
      "predict", "Writes a model's answers as CSV: a row a sample, which needs no target.");
  add_model_and_data(command, o.model, o.data, threads, "Prediction",
                     "fast-model predict run --data new.csv --to answers.csv");
  tools::offer(command.add_option("--to", o.to, "file for the answers; -: standard output"),
               {"<file>"});
  return command;
}

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
  tools::Command program("fast-model", "Looks into saved models, tests them, and converts them.",
                         "fast-model info run/mean-model.safetensors");
  Files files;
  const tools::Command& info = add_info(program, files);
  const tools::Command& exported = add_export(program, files);
  data::LoadOptions reading;
  options::OptionTable table;
  data::add_rows(table, reading);
  change_rows(table);
  tools::TableOptions reading_options(table);
  int threads = 0;
  fast_model::EvaluateOptions evaluation;
  tools::Command& evaluated = add_evaluate(program, evaluation, threads);
  reading_options.add_to(evaluated, "fast-model evaluate run --data images --resize model");
  fast_model::PredictOptions prediction;
  tools::Command& predicted = add_predict(program, prediction, threads);
  reading_options.add_to(predicted, "fast-model predict run --data photos --resize model");
  if (const auto status = tools::parse(program, argc, argv)) return *status;
  if (info.parsed()) show(files.from);
  if (exported.parsed()) export_model(files.from, files.to, files.model);
  reading_options.take();
  const int cores = tbb::info::default_concurrency();  // oneTBB warns of more
  const tbb::global_control limit(
      tbb::global_control::max_allowed_parallelism,
      static_cast<std::size_t>(threads > 0 ? std::min(threads, cores) : cores));
  if (evaluated.parsed()) fast_model::evaluate(evaluation, reading);
  if (predicted.parsed()) fast_model::predict(prediction, reading);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-model", [&] { return run(argc, argv); });
}
