// fast-train's command line: options as they were given, and whether they make sense.
#pragma once

#include <cstdint>
#include <fast/exchange/group.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast_train {

struct Options {
  std::string data = "fashion-mnist";
  std::string backend = "nn";
  std::string model = "lenet";
  std::string device = "cpu";
  std::string precision = "f32";
  std::string topology = "torus2d";
  std::string algorithm = "awc";
  std::string exchange = "hybrid";
  std::string staleness = "0";
  std::string codec = "identity";
  std::string arena = "fixed";
  std::string remote_path = "measured";
  std::string schedule = "cosine";
  std::string shards = "even";
  std::string out, summary_json;
  std::string closing_rounds = "auto", slow;
  std::vector<std::string> algorithm_options;
  int epochs = 5, workers = 4, patience = 0;
  std::int64_t batch_size = 64;
  double warmup_epochs = 1, clip_norm = 0;
  std::optional<double> learning_rate, weight_decay, momentum, beta1, beta2;
  std::string optimizer = "sgd", nan = "abort";
  std::int64_t rejoin_after = 10;
  bool nesterov = false;
  int accumulate = 1, threads = 1, loader_threads = 1;
  std::optional<int> prefetch;
  std::uint64_t seed = 1;
  double deadline_s = 300, suspect_after_s = 5, step_ms = 0, validation = 0, ema = 0,
         remote_rate = 0;
  std::size_t samples = 0, evaluate_every = 0;
  std::vector<std::string> given;  ///< names of the options on the command line
  std::string checkpoint_every, checkpoints, resume;
  int keep = 2;
  bool overwrite = false, strict = false, take_over = false;
  bool autotune = false, graph = false, deterministic = false;
  bool quiet = false, augment = false, no_placement = false;
};

/// Collective. Nothing when only help was asked for.
/// @throws fast::Error (argument) on every worker, for what is unknown or does not fit.
std::optional<Options> read_options(const fast::Group& ranks, int argc, char** argv);

bool was_given(const Options& o, std::string_view option);

/// Throws Error(argument) when an option was given that changes nothing in such a run.
void check_needs(const Options& o);

}  // namespace fast_train
