// Trains one replica on each worker: epochs, evaluation of the mean model, metrics, progress and a
// summary.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/data/load.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/sample_stream.hpp>
#include <fast/data/sampler.hpp>
#include <fast/exchange/group.hpp>
#include <fast/train/summary.hpp>
#include <fast/worker/worker.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::train {

// Learning rates over a run.

/// base × a factor that depends on how far the run is. Linear scaling (Goyal et al. 2017, arXiv
/// 1706.02677): with k times the batch, take k times the base and a warm-up.
struct LearningRate {
  enum class Schedule {
    constant,
    step,     ///< a tenth after half of the run, a hundredth after three quarters
    cosine,   ///< half a cosine, from 1 to 0 (Loshchilov & Hutter 2017, arXiv 1608.03983)
    plateau,  ///< lower each time that the loss on validation samples falls no more
  };
  double base = 0.05;
  Schedule schedule = Schedule::constant;
  double warmup_epochs = 0;  ///< of a linear rise from 0; at most a quarter of the run counts
  /// Of plateau: the rate is multiplied by the factor when more epochs than these in a row had no
  /// loss below (1 - threshold) times the least one before, as by PyTorch's ReduceLROnPlateau.
  /// Epochs of the warm-up do not count. Worker 0 decides, the others follow it in the same round
  /// (at staleness 0): at the next epoch's beginning, or one epoch later in a run of several.
  double plateau_factor = 0.1;
  int plateau_patience = 10;
  double plateau_threshold = 1e-4;

  /// That counts in a run of so many epochs.
  double warmup_of(double epochs) const;
  /// The rate after `epochs_done` of `epochs`; fractions of epochs count. `reductions`: of plateau,
  /// so far.
  double at(double epochs_done, double epochs, std::int64_t reductions = 0) const;
};

/// "0.05, cosine, warm-up of 1 epoch": in a run of so many epochs.
std::string describe(const LearningRate& rate,
                     double epochs = std::numeric_limits<double>::infinity());

/// "constant", "step", "cosine" or "plateau". Throws Error(argument) with the choices on another
/// name.
LearningRate::Schedule learning_rate_schedule(std::string_view name);

// How the samples of a round are divided among workers.

/// The batches of all workers have N × TrainerOptions::batch_size samples together, whatever the
/// division. Steps are scaled in proportion to batches, so that each sample counts alike; see
/// docs/how-to/mixed-machines.md.
struct Balance {
  enum class Kind {
    even,      ///< all batches have the same size
    measured,  ///< in proportion to measured speeds, divided anew when these change
    given,     ///< in proportion to `speeds`
  };
  Kind kind = Kind::even;
  std::vector<double> speeds{};  ///< given: by rank, positive, in any unit

  bool is_even() const { return kind == Kind::even; }
  std::string text() const;  ///< "even", "measured" or "1,2,4"
};

/// Reads such a text. Throws Error(argument) on another one and on speeds that are not positive.
Balance balance_from(std::string_view text);

/// How long steps take, to test runs with slow workers. A step that is shorter sleeps for the rest.
struct Pace {
  double step_s = 0;             ///< of a step on TrainerOptions::batch_size samples, at least
  std::map<int, double> slow{};  ///< by worker: how many times as long its steps take
};

/// When a run saves its state, and from which state it resumes; see docs/how-to/checkpoints.md.
struct CheckpointOptions {
  std::int64_t every_rounds = 0;                   ///< 0: not by rounds
  double every_s = 0;                              ///< 0: not by time
  std::optional<std::filesystem::path> directory;  ///< TrainerOptions::out / "checkpoints" if empty
  int keep = 2;
  /// A checkpoint of any number of workers, or a directory of checkpoints: the newest is taken.
  std::optional<std::filesystem::path> resume;
  bool strict = false;  ///< refuse checkpoints of which some worker's file is missing or broken
  /// Called several times a second by the library's thread that also sends this worker's signs of
  /// life to the other workers: it must return at once. When it returns true on any worker, all
  /// workers save in the same round (at staleness 0) and end training. A run without checkpoints
  /// ends with the mean model of that round.
  std::function<bool()> stop_requested;
};

/// Where the weights live while a model trains: in its own memory (fixed), or in the worker's slots
/// (rotating), where the averaging pass adds the optimizer's step (RotatingArena). A rotating arena
/// needs a rule that is a plain average (awc, pairwise), the codec identity, NotFinite::abort and a
/// backend with in_slots().
enum class Arena { fixed, rotating };

/// How progress is shown. automatic: a bar if the stream is a terminal, or if fastrun shows it on
/// one; nothing if fastrun shows a table of its own; otherwise lines.
enum class ProgressStyle { automatic, bar, lines, none };

/// The names of the data, the model and the optimizer in the opening table and in metrics. Empty
/// ones are left out.
struct RunNames {
  std::string data, model, optimizer;
  std::string layers{}, loss{};  ///< the text of a model's file; the loss by its name
  double huber_delta = 1;        ///< of the loss huber
};

struct TrainerOptions {
  RunNames names;
  int epochs = 5;
  std::size_t batch_size = 64;  ///< of each worker; the mean over all workers with `balance`
  std::uint64_t seed = 1;       ///< of the samples' order and the skewed shards
  /// Where the training samples come from, on this worker; null: the data set. The training part
  /// then only says what the samples are and how many an epoch has (data::form_of_stream()). The
  /// run begins with the first sample of the stream, or goes on after those of a checkpoint. A
  /// worker waits before a round until the samples of all workers are there. Not with skewed
  /// shards, balance, validation, a window, spares, an all-reduce or a rotating arena.
  std::shared_ptr<data::SampleStream> stream;
  data::Sharding shards;  ///< which worker trains on which samples
  /// Workers of different speeds. Not with skewed shards, with spares, or where no worker averages.
  Balance balance;
  /// The samples of an optimizer step. A worker makes the steps of its batch in a round, then
  /// averages. 0: one step with the whole batch. A shorter last step is scaled in proportion. So
  /// workers of larger batches make more local steps, and each sample counts alike
  /// (docs/reference/algorithms.md). Not with an all-reduce, a rotating arena, or rules with a
  /// momentum of their own.
  std::size_t step_samples = 0;
  /// So many samples are shuffled together, as data::WindowSampler does: for data in shards (empty:
  /// 10,000), and for data in memory if this is set. Empty, for data in memory: all are shuffled.
  std::optional<std::size_t> window;
  /// With skewed shards: when a worker is gone (see Worker::departed()), its neighbors train on its
  /// samples from the next epoch on, in as many rounds as before. When it returns, it gets them
  /// back. Even shards need no such thing: all samples are dealt anew every epoch.
  bool take_over = false;
  std::optional<data::Augmentation> augmentation;  ///< of training images
  /// Samples of a batch are mixed in shares drawn from Beta(mixup, mixup), see data::Loader::mix();
  /// 0: not. Samples have one class label then, and the backend takes mixed labels.
  double mixup = 0;
  /// How many training batches a thread makes ahead (none by default), and how many threads make
  /// one.
  data::PrefetchOptions prefetch = {.ahead = 0};
  int loader_threads = 1;
  LearningRate learning_rate;  ///< set in the backend before every step
  /// The baseline: averages gradients over all workers before every optimizer step, and no weights.
  bool all_reduce = false;
  Arena arena = Arena::fixed;
  /// Places the ranks of several hosts in the topology so that more neighbors share a host.
  /// Otherwise rank r is worker r.
  bool placement = true;
  /// The momentum of the backend's SGD, for the stability bound in the opening table. Empty:
  /// another optimizer, for which the table has no bound.
  std::optional<double> momentum = 0.0;
  std::optional<std::filesystem::path> out;  ///< metrics, logs and mean-model.safetensors go there
  LogLevel log_level = LogLevel::info;       ///< the least that out/logs/<rank>.log keeps
  /// When `out` or the directory of checkpoints holds another run than the resumed one: true
  /// removes that run's metrics, mean model and checkpoints first; false is Error(argument).
  bool overwrite = false;
  /// What this worker computes on; empty: the CPU. The opening table lists the devices of all
  /// workers unless all compute on the CPU.
  std::string device;
  bool progress = true;  ///< worker 0 prints the opening table and its progress to standard error
  ProgressStyle progress_style = ProgressStyle::automatic;
  std::size_t evaluate_every = 0;  ///< rounds between lines of metrics within an epoch; 0: none
  /// Rounds of averaging only, after training; empty: fast::closing_rounds() determines the number.
  std::optional<std::int64_t> closing_rounds;
  Pace pace;
  /// Called before every round by the worker's own thread. When it returns true, this worker leaves
  /// training for good (Worker::leave()) and train() returns at once; the others go on. May be
  /// empty; mpi::asked_to_leave fits.
  std::function<bool()> leave_requested;
  /// The share of the training samples, the last ones, on which no worker trains. After every epoch
  /// worker 0 tests the mean model on them, and the run ends with the best one. It waits for no
  /// worker, so that repeated runs of several workers may end with other models, at staleness 0,
  /// too. 0: the run ends with the last mean model.
  double validation = 0;
  /// Worker 0 ends training with validation when the mean model has not improved for so many
  /// epochs. Every other worker ends with the epoch in which it sees that. No worker waits, so
  /// workers may end in different rounds. 0: never. Not with rules that average over all workers.
  int patience = 0;
  /// The decay in [0, 1) of an exponential moving average of each replica's weights over its steps.
  /// The run ends with these averages; 0: with the weights themselves. Not together with validation
  /// or a rotating arena.
  double ema_decay = 0;
  CheckpointOptions checkpoints;
  WorkerOptions worker;
  /// The text of OUT/config.toml: all options, from which the run can be repeated. Worker 0 writes
  /// it once the directory is the run's. A run that goes on writes config-2.toml and so on. Empty:
  /// none.
  std::string configuration;
  /// Makes one more observer of this worker, once the directory `out` is the run's: writers of
  /// files. `log` goes to worker.log and to the worker's log in `out`. Error(resource) ends the run
  /// on every worker. May be empty.
  std::function<std::shared_ptr<Observer>(int worker, const LogSink& log)> make_observer;
  /// How many seconds this worker's clock is ahead of worker 0's, for metrics: see
  /// observe::clock_offset(). Empty: not known.
  std::optional<double> clock_offset_s;
};

/// Collective over the group; each worker has a backend of its own. Shards the training part,
/// trains, brings the replicas together by closing rounds, leaves the mean model in every worker's
/// backend and returns the same summary on every worker. When workers die (see fastrun), the others
/// continue: each ends by itself, without closing rounds, with the survivors' mean model.
///
/// Over a group with spares (see with_spares()), a spare waits until it is needed and then trains
/// on the seat of a lost worker. Where Group::has_seat() is false afterwards, the summary is empty;
/// so is that of a worker that has left, but for Summary::has_left. Both have given up the group.
///
/// Errors, besides the Worker's: Error(argument) when options are out of range, Error(data) when
/// data and model do not fit; the same on every worker.
Summary train(const Group& group, const TopologyRule& rule, Backend& backend,
              const data::Splits& data, const TrainerOptions& options);

}  // namespace fast::train
