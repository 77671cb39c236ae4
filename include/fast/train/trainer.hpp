// Trains a replica a worker: epochs, evaluation of the mean model, metrics, progress, a summary.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/data/augment.hpp>
#include <fast/data/load.hpp>
#include <fast/data/prefetcher.hpp>
#include <fast/data/sharding.hpp>
#include <fast/exchange/group.hpp>
#include <fast/train/learning_rate.hpp>
#include <fast/train/summary.hpp>
#include <fast/worker/worker.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

namespace fast::train {

/// How long steps take, to see how a run bears slow workers: a step shorter than that sleeps.
struct Pace {
  double step_s = 0;     ///< of every step, at least
  int slow_worker = -1;  ///< whose steps take slow_factor times as long as they would; -1: none
  double slow_factor = 1;
};

/// When a run saves its state, and which state it resumes; see docs/how-to/checkpoints.md.
struct CheckpointOptions {
  std::int64_t every_rounds = 0;                   ///< 0: not by rounds
  double every_s = 0;                              ///< 0: not by time
  std::optional<std::filesystem::path> directory;  ///< TrainerOptions::out / "checkpoints" if empty
  int keep = 2;
  /// A checkpoint, or a directory of which the newest is taken, of any number of workers.
  std::optional<std::filesystem::path> resume;
  bool strict = false;  ///< refuse checkpoints of which some worker's file is missing or broken
  /// Asked several times a second, by a thread of its own. Once any worker's says true, all save in
  /// the same round (at staleness 0) and leave training. Where no checkpoints are written, all end
  /// training there, and the run ends with the mean model as it is.
  std::function<bool()> stop_requested;
};

/// Where the weights are while a model trains: in its own memory, or in the worker's slots, where
/// the optimizer takes part in the pass that averages (RotatingArena). The latter with
/// rules that average plainly (awc, pairwise), the codec identity, NotFinite::abort and backends
/// that can.
enum class Arena { fixed, rotating };

struct TrainerOptions {
  int epochs = 5;
  std::size_t batch_size = 64;  ///< of each worker
  std::uint64_t seed = 1;       ///< of the samples' order and the skewed shards
  data::Sharding shards;        ///< who trains on which samples
  /// With skewed shards, the neighbors of a worker that is gone (see Worker::lost()) share its
  /// samples from the next epoch on, in as many rounds as before, and give them back when it
  /// returns. With even shards all samples are dealt anew every epoch anyway.
  bool take_over = false;
  std::optional<data::Augmentation> augmentation;  ///< of training images
  /// Batches of training that a thread makes ahead, none unless told to; and threads for each.
  data::PrefetchOptions prefetch = {.ahead = 0};
  int loader_threads = 1;
  LearningRate learning_rate;  ///< set in the backend before every step
  /// Average gradients over all workers before every optimizer step, in place of the neighbors'
  /// weights: the baseline.
  bool all_reduce = false;
  Arena arena = Arena::fixed;
  /// On several hosts ranks take places in the topology so that neighbors share hosts where they
  /// can; otherwise rank r is worker r.
  bool placement = true;
  /// Of the backend's optimizer: for the stability told at the start. Empty: it is not SGD, and
  /// nothing is told.
  std::optional<double> momentum = 0.0;
  std::optional<std::filesystem::path>
      out;  ///< metrics-<rank>.jsonl and mean-model.safetensors go there
  /// Where `out` or the directory of checkpoints holds another run, that is not the one resumed,
  /// its metrics, mean model and checkpoints are removed first. Otherwise it is Error(argument).
  bool overwrite = false;
  /// What this worker computes on, empty for the CPU: the opening table tells it of all workers
  /// when any has something else.
  std::string device;
  bool progress = true;  ///< on worker 0, to standard error, after a table of what is about to run
  std::size_t evaluate_every = 0;  ///< rounds between lines of metrics within an epoch; 0: none
  /// Rounds of averaging only, after training; empty: as many as fast::closing_rounds() says.
  std::optional<std::int64_t> closing_rounds;
  Pace pace;
  /// Share of the training samples, the last ones, that nobody trains on: after every epoch worker
  /// 0 tests the mean model on them, and the best of these is what the run ends with. 0: the last.
  double validation = 0;
  /// With validation: worker 0 leaves training when the mean model has not got better for so many
  /// epochs, and every other worker does at the end of the epoch in which it sees that. No one
  /// waits, so that workers may stop in different rounds. 0: never. Not with rules that average
  /// over all workers.
  int patience = 0;
  /// Decay of an exponential average of each replica's weights over its steps, which is what the
  /// run ends with, in [0, 1). 0: the weights themselves. Not together with validation.
  /// Not with a rotating arena.
  double ema_decay = 0;
  CheckpointOptions checkpoints;
  WorkerOptions worker;
};

/// Collective over the group: each worker with a backend of its own. Shards the training part,
/// trains, brings the replicas together by closing rounds, leaves the mean model in every worker's
/// backend and returns the same summary on every worker. When workers die on the way (see fastrun),
/// the others go on: each ends by itself, without closing rounds, with the survivors' mean model.
///
/// Errors, besides the Worker's: Error(argument) on options out of range, Error(data) when data and
/// model do not fit; the same on every worker.
Summary train(const Group& group, const TopologyRule& rule, Backend& backend,
              const data::Splits& data, const TrainerOptions& options);

}  // namespace fast::train
