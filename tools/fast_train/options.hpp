// The options of fast-train. A new option is a member and a row: in a *_rows.cpp here when it is
// the program's, in options/rows.cpp of lib/data, lib/train or lib/worker when it is the library's.
#pragma once

#include <fast/data/load.hpp>
#include <fast/nn/loss.hpp>
#include <fast/observe/trace.hpp>
#include <fast/train/trainer.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "options/option_table.hpp"
#include "sites/site_choice.hpp"
#include "worker/worker_options.hpp"

namespace fast_train {

/// What is done in place of training.
struct Requests {
  bool help = false, help_markdown = false, version = false, describe = false;
  std::string config, write_config;
};

struct Options {
  Options();

  std::string data = "fashion-mnist";
  fast::data::LoadOptions load;  ///< how that is read
  std::string backend = "nn";
  std::string model = "lenet";
  std::string device = "cpu";
  std::string precision = "f32";
  std::string topology = "torus2d";
  std::string exchange = "hybrid";
  std::string optimizer = "sgd";
  std::string init_weights, init_map;
  std::string summary_json;
  std::string run_name;
  bool tensorboard = false, trace = false;
  int metrics_port = 0;
  std::string metrics_listen = "127.0.0.1";
  fast::observe::TraceOptions trace_options;
  fast::RuleChoice rule;
  fast::sites::SiteChoice site;
  int workers = 4, accumulate = 1, threads = 1;
  double measure_s = 1;
  int spares = 0;
  std::size_t batch_size = 64;
  bool batch_fits = false;  ///< it was not given: fewer samples make it smaller
  double clip_norm = 0;
  std::optional<double> learning_rate, weight_decay, momentum, beta1, beta2;
  std::optional<int> prefetch;
  std::optional<fast::nn::Loss> loss;
  double huber_delta = fast::nn::LossSpec{}.delta, label_smoothing = 0;
  std::string class_weights;
  double rotate = 0, color_jitter = 0, erase = 0;
  bool augment = false, nesterov = false, quiet = false, no_placement = false;
  bool autotune = false, graph = false, deterministic = false;
  /// Members that have a row in the library's tables. settings.cpp sets the others.
  fast::train::TrainerOptions trainer;
  Requests requests;
};

/// All rows of the program, with those of the library.
void add_rows(fast::options::OptionTable& table, Options& o);
/// Those of the program alone, and those of its data.
void add_own_rows(fast::options::OptionTable& table, Options& o);

/// The groups of rows, in the order in which they are shown.
std::vector<tools::Group> groups();

bool is_all_reduce(const Options& o);
/// The samples come from a stream.
bool is_stream(const Options& o);
/// True for rules that divide by the learning rate.
bool brings_momentum(const Options& o);

}  // namespace fast_train
