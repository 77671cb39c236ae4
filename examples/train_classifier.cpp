// fast-train: trains a classifier with one replica a worker, each averaging with its neighbours.
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fast/data/load.hpp>
#include <fast/fast.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/train/trainer.hpp>
#include <fstream>
#include <functional>
#include <optional>

#include "backends/backends.hpp"

namespace {

using namespace fast;

struct Options {
  std::string data = "fashion-mnist";
  std::string backend = "nn";
  std::string model = "lenet";
  std::string topology = "torus2d";
  std::string algorithm = "awc";
  std::string exchange = "hybrid";
  std::string staleness = "0";
  std::string codec = "identity";
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
  int accumulate = 1, threads = 1;
  std::uint64_t seed = 1;
  double deadline_s = 300, suspect_after_s = 5, step_ms = 0, validation = 0, ema = 0,
         remote_rate = 0;
  std::size_t samples = 0, evaluate_every = 0;
  std::vector<std::string> given;  ///< names of the options on the command line
  std::string checkpoint_every, checkpoints, resume;
  int keep = 2;
  bool strict = false;
  bool quiet = false, augment = false, no_placement = false;
};

void describe(CLI::App& app, Options& o) {
  app.description(
      "Trains a classifier on several workers. Each holds a replica, trains on its own shard and "
      "averages weights\n"
      "only with its neighbors in a topology: no parameter server, no all-reduce, no barrier.\n"
      "Start with   mpiexec -n 4 fast-train   or, as threads of one process,   fast-train "
      "--exchange local");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app.add_option(
      "--data", o.data,
      "fashion-mnist, or a directory with four IDX files (plain or .gz), CIFAR-10's binary "
      "files, or images in train/<class>/*.png and test/<class>/*.png");
  app.add_option("--samples", o.samples, "train on the first so many samples only; 0: all");
  app.add_flag("--augment", o.augment,
               "train on crops of images padded by 4, every other one mirrored");
  app.add_option("--shards", o.shards,
                 "even, or dirichlet:ALPHA: each worker has few labels (the fewer, the smaller "
                 "ALPHA), as of data gathered in different places");
  app.add_option("--model", o.model,
                 "lenet (61,706 parameters), mlp (784-256-10), mlp:A-B-... (hidden widths) or "
                 "resnet20 (272,474, 32x32 color images)");
  app.add_option("--backend", o.backend,
                 "what computes the model: nn (the library's own), torch (LibTorch) or dlib");
  app.add_option("--topology", o.topology, "who averages with whom: a name or a .toml file");
  app.add_flag("--no-placement", o.no_placement,
               "rank r is worker r of the topology, whatever edges then lie between hosts");
  app.add_option("--algorithm", o.algorithm, "the rule that combines weights");
  app.add_option("--algorithm-option", o.algorithm_options,
                 "KEY=VALUE, an option of the rule (\"period=8\"); may be repeated");
  app.add_option(
      "--exchange", o.exchange,
      "hybrid (shared windows within a host, remote ones between hosts), shared (one host "
      "only), local (threads) or allreduce (the baseline: gradients are averaged)");
  app.add_option("--staleness", o.staleness,
                 "how many rounds old a neighbor's weights may be, or inf");
  app.add_option("--codec", o.codec,
                 "what messages look like: identity, bf16 or fp16 (half the bytes), int8 (a "
                 "quarter); bf16_stochastic, int8_stochastic");
  app.add_option("--remote-path", o.remote_path,
                 "how other hosts are reached: measured (what start-up finds faster, for each pair "
                 "of neighbors), two_sided (messages) or pull (reads)");
  app.add_option(
      "--remote-rate", o.remote_rate,
      "cap on what a worker sends to other hosts (pull: reads there), in Mbit/s; 0: none");
  app.add_option("--epochs", o.epochs, "passes over the training data");
  app.add_option("--batch-size", o.batch_size, "samples a step and worker");
  app.add_option("--accumulate", o.accumulate,
                 "batches whose gradients are averaged for one step (and one round)");
  app.add_option("--optimizer", o.optimizer, "sgd, adam or adamw");
  app.add_option("--lr", o.learning_rate, "learning rate [0.05 for sgd, 0.001 for adam and adamw]");
  app.add_option("--lr-schedule", o.schedule,
                 "constant, step (a tenth at 1/2, a hundredth at 3/4) or cosine");
  app.add_option("--warmup", o.warmup_epochs,
                 "epochs of linear rise to the learning rate (a quarter of the run at most)");
  app.add_option("--momentum", o.momentum,
                 "momentum of sgd [0.9, or 0 for rules that bring their own]");
  app.add_flag("--nesterov", o.nesterov, "Nesterov's form of sgd's momentum");
  app.add_option("--beta1", o.beta1, "decay of the first moment of adam and adamw [0.9]");
  app.add_option("--beta2", o.beta2, "decay of the second moment of adam and adamw [0.999]");
  app.add_option("--weight-decay", o.weight_decay, "weight decay [0.01 for adamw, else 0]");
  app.add_option("--clip-norm", o.clip_norm,
                 "scale gradients of a larger norm down to it; 0: leave them");
  app.add_option("--threads", o.threads, "cores that each worker computes on");
  app.add_option("--seed", o.seed, "of initial weights and sample order");
  app.add_option("--closing-rounds", o.closing_rounds,
                 "rounds of averaging only, after training; auto: by the spectral gap");
  app.add_option("--validation", o.validation,
                 "share of the training samples held out to choose the best epoch's mean model by");
  app.add_option(
      "--patience", o.patience,
      "epochs without a better mean model (by --validation) after which the run ends; 0: all");
  app.add_option("--ema", o.ema, "decay of an average of weights over steps, to end with; 0: none");
  app.add_option("--slow", o.slow,
                 "RANK:FACTOR, a worker whose steps sleep to take FACTOR times as long");
  app.add_option("--step-ms", o.step_ms, "steps sleep to take at least so long");
  app.add_option("--evaluate-every", o.evaluate_every,
                 "rounds between lines of metrics (with --out), besides those of epochs; 0: none");
  app.add_option("--out", o.out, "directory for metrics-<rank>.jsonl and mean-model.safetensors");
  app.add_option("--checkpoint-every", o.checkpoint_every,
                 "a number of rounds, or a time (90s, 10min), after which all save what they need "
                 "to go on; on SIGTERM or SIGUSR2 they save and end");
  app.add_option("--checkpoints", o.checkpoints,
                 "directory for checkpoints, the same for all workers [OUT/checkpoints]");
  app.add_option("--keep", o.keep, "checkpoints that stay");
  app.add_option("--resume", o.resume, "a checkpoint, or a directory of them, to go on from");
  app.add_flag("--strict", o.strict, "refuse checkpoints of which some worker's file is broken");
  app.add_option("--summary-json", o.summary_json, "file for the closing table as JSON");
  app.add_option("--deadline", o.deadline_s, "longest wait for another worker, in seconds");
  app.add_option("--suspect-after", o.suspect_after_s,
                 "seconds without a sign of life after which a worker is left out");
  app.add_option(
      "--rejoin-after", o.rejoin_after,
      "rounds behind its neighbors from which a worker that was stopped adopts their average");
  app.add_option("--nan", o.nan,
                 "what a loss or weights that are not finite do: abort the run, or heal (the step "
                 "is left out)");
  app.add_option("--workers", o.workers, "threads to start, with --exchange local");
  app.add_flag("--quiet", o.quiet, "no opening table and progress, only the closing table");
  std::string names;
  for (const auto& topology : topology_names())
    names += fmt::format("\n  {:<24}{}", topology.name, topology.help);
  app.footer(
      fmt::format("Algorithms: {}\nTopologies: {}", fmt::join(algorithm::names(), ", "), names));
}

/// True when all of `text` is a number.
template <class Number>
bool reads(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::int64_t staleness_of(const std::string& text) {
  if (text == "inf") return unbounded_staleness;
  std::int64_t value = -1;
  require(reads(text, value) && value >= 0, ErrorKind::argument,
          "--staleness: \"{}\"; a number of rounds, 0 or more, or inf is required", text);
  return value;
}

RemotePathChoice remote_path_of(const std::string& text) {
  if (text == "measured") return RemotePathChoice::measured;
  if (text == "pull") return RemotePathChoice::pull;
  require(text == "two_sided", ErrorKind::argument,
          "--remote-path: \"{}\"; choose measured, two_sided or pull", text);
  return RemotePathChoice::two_sided;
}

std::optional<std::int64_t> closing_rounds_of(const std::string& text) {
  if (text == "auto") return std::nullopt;
  std::int64_t rounds = -1;
  require(reads(text, rounds) && rounds >= 0, ErrorKind::argument,
          "--closing-rounds: \"{}\"; a number of rounds, 0 or more, or auto is required", text);
  return rounds;
}

/// Set by the signals of pre-emption.
volatile std::sig_atomic_t stop_signal = 0;

train::CheckpointOptions checkpoints_of(const Options& o) {
  train::CheckpointOptions checkpoints;
  if (!o.checkpoints.empty()) checkpoints.directory = o.checkpoints;
  if (!o.resume.empty()) checkpoints.resume = o.resume;
  checkpoints.keep = o.keep;
  checkpoints.strict = o.strict;
  checkpoints.stop_requested = [] { return stop_signal != 0; };
  std::string_view text = o.checkpoint_every;
  if (text.empty()) return checkpoints;
  const double unit_s = text.ends_with("min") ? 60 : text.ends_with("s") ? 1 : 0;
  if (unit_s > 0) text.remove_suffix(unit_s == 60 ? 3 : 1);
  const bool good = unit_s > 0
                        ? reads(text, checkpoints.every_s) && checkpoints.every_s > 0
                        : reads(text, checkpoints.every_rounds) && checkpoints.every_rounds > 0;
  require(good, ErrorKind::argument,
          "--checkpoint-every: \"{}\"; a number of rounds or a time (90s, 10min) is required",
          o.checkpoint_every);
  checkpoints.every_s *= unit_s;
  return checkpoints;
}

train::Pace pace_of(const Options& o) {
  train::Pace pace;
  pace.step_s = o.step_ms / 1000;
  if (o.slow.empty()) return pace;
  const std::string_view text = o.slow;
  const std::size_t colon = std::min(text.find(':'), text.size() - 1);
  require(reads(text.substr(0, colon), pace.slow_worker) &&
              reads(text.substr(colon + 1), pace.slow_factor) && pace.slow_worker >= 0,
          ErrorKind::argument, "--slow: \"{}\"; RANK:FACTOR is required (2:4)", o.slow);
  return pace;
}

/// "mlp:A-B-...": the hidden layers' widths.
std::vector<std::int64_t> widths_of(const std::string& name, int classes) {
  std::vector<std::int64_t> widths{784};
  for (std::size_t begin = 4; begin <= name.size();) {
    const std::size_t end = std::min(name.find('-', begin), name.size());
    std::int64_t width = 0;
    require(reads(std::string_view(name).substr(begin, end - begin), width) && width > 0,
            ErrorKind::argument,
            "--model: \"{}\"; widths of hidden layers are required (mlp:512-256)", name);
    widths.push_back(width);
    begin = end + 1;
  }
  widths.push_back(classes);
  return widths;
}

nn::ModelSpec model_of(const std::string& name, int classes) {
  if (name == "lenet") return nn::lenet5(classes);
  if (name == "mlp") return nn::mlp({784, 256, classes});
  if (name == "resnet20") return nn::resnet20(classes);
  if (name.starts_with("mlp:")) return nn::mlp(widths_of(name, classes));
  fail(ErrorKind::argument,
       "--model: \"{}\" is unknown; choose lenet, mlp, mlp:A-B-... or resnet20", name);
}

std::unique_ptr<algorithm::Algorithm> rule_of(const Options& o) {
  return algorithm::by_name(o.algorithm, algorithm::parameters_from(o.algorithm_options));
}

bool is_all_reduce(const Options& o) {
  return o.exchange == "allreduce" || o.algorithm == "allreduce";
}

/// Rules that divide by the learning rate bring momentum themselves.
bool brings_momentum(const Options& o) {
  return !is_all_reduce(o) && rule_of(o)->declaration().needs_learning_rate;
}

/// Of sgd; empty for other optimizers.
std::optional<double> momentum_of(const Options& o) {
  if (o.optimizer != "sgd") return std::nullopt;
  return o.momentum.value_or(brings_momentum(o) ? 0 : nn::SgdOptions{}.momentum);
}

nn::OptimizerSpec optimizer_of(const Options& o) {
  nn::OptimizerSpec spec = nn::optimizer_spec(o.optimizer);
  std::visit(
      [&](auto& options) {
        options.learning_rate = o.learning_rate.value_or(options.learning_rate);
        options.weight_decay = o.weight_decay.value_or(options.weight_decay);
      },
      spec);
  if (auto* sgd = std::get_if<nn::SgdOptions>(&spec)) {
    sgd->momentum = *momentum_of(o);
    sgd->nesterov = o.nesterov;
  } else {
    auto& adam = std::get<nn::AdamOptions>(spec);
    adam.beta1 = o.beta1.value_or(adam.beta1);
    adam.beta2 = o.beta2.value_or(adam.beta2);
  }
  return spec;
}

std::unique_ptr<Backend> backend_of(const Options& o, int classes) {
  const nn::ModelSpec spec = model_of(o.model, classes);
  const nn::BackendOptions options{optimizer_of(o), o.clip_norm, o.accumulate, o.threads};
  if (o.backend == "nn") return nn::make_backend<float>(spec, o.seed, options);
  if (o.backend == "torch") return backends::make_torch<float>(spec, o.seed, options);
  if (o.backend == "dlib") return backends::make_dlib(spec, o.seed, options);
  fail(ErrorKind::argument, "--backend: \"{}\" is unknown; choose nn, torch or dlib", o.backend);
}

double learning_rate_of(const Options& o) {
  return std::visit([](const auto& spec) { return spec.learning_rate; }, optimizer_of(o));
}

void check_optimizer(const Options& o) {
  const bool sgd = o.optimizer == "sgd";
  require(
      sgd || (!o.momentum && !o.nesterov), ErrorKind::argument,
      "--optimizer {}: --momentum and --nesterov are options of sgd; leave them out (--beta1 is "
      "its momentum) or take sgd",
      o.optimizer);
  require(!sgd || (!o.beta1 && !o.beta2), ErrorKind::argument,
          "--optimizer sgd: --beta1 and --beta2 are options of adam and adamw; leave them out "
          "(--momentum is its own) or take one of these");
  require(!brings_momentum(o) || (sgd && *momentum_of(o) == 0), ErrorKind::argument,
          "--algorithm {}: it brings momentum itself, on steps of plain SGD; leave --momentum out "
          "and take --optimizer sgd (its own is --algorithm-option momentum=0.9)",
          o.algorithm);
}

/// Options given that change nothing in such a run.
std::vector<std::string> without_effect(const Options& o) {
  const bool all_reduce = is_all_reduce(o), alone = all_reduce || o.algorithm == "none";
  const std::pair<const char*, bool> idle[] = {
      {"--topology", alone},
      {"--no-placement", alone},
      {"--staleness", alone},
      {"--closing-rounds", alone},
      {"--algorithm", all_reduce && o.algorithm != "allreduce"},
      {"--algorithm-option", all_reduce},
      {"--evaluate-every", o.out.empty()},
  };
  std::vector<std::string> names;
  for (const auto& [name, is_idle] : idle) {
    const bool given = std::find(o.given.begin(), o.given.end(), name) != o.given.end();
    if (given && is_idle) names.emplace_back(name);
  }
  return names;
}

void check(const Options& o, int ranks) {
  require(o.exchange == "shared" || o.exchange == "hybrid" || o.exchange == "local" ||
              o.exchange == "allreduce",
          ErrorKind::argument,
          "--exchange: \"{}\" is unknown; choose hybrid, shared, local or allreduce", o.exchange);
  require(o.exchange != "local" || ranks == 1, ErrorKind::argument,
          "--exchange local: workers are threads of one process, mpiexec started {}; leave mpiexec "
          "out or choose "
          "--exchange hybrid",
          ranks);
  require(o.nan == "abort" || o.nan == "heal", ErrorKind::argument,
          "--nan: \"{}\" is unknown; choose abort or heal", o.nan);
  require(o.workers >= 1, ErrorKind::argument, "--workers: {}; at least 1 is needed", o.workers);
  const bool threads = std::find(o.given.begin(), o.given.end(), "--workers") != o.given.end();
  require(!threads || o.exchange == "local", ErrorKind::argument,
          "--workers {}: threads are workers with --exchange local only; add that, or start ranks "
          "with mpiexec -n {}",
          o.workers, o.workers);
  check_optimizer(o);
  const double rate = learning_rate_of(o);
  require(std::isfinite(rate) && rate > 0, ErrorKind::argument,
          "--lr: {}; a positive number is required", rate);
  require(o.accumulate >= 1, ErrorKind::argument, "--accumulate: {}; at least 1 is needed",
          o.accumulate);
  require(o.deadline_s > 0, ErrorKind::argument,
          "--deadline: {}; a positive number of seconds is required", o.deadline_s);
  require(o.remote_rate >= 0, ErrorKind::argument,
          "--remote-rate: {}; a number of Mbit/s is required, or 0 for no cap", o.remote_rate);
  require(o.batch_size >= 1, ErrorKind::argument, "--batch-size: {}; at least 1 is needed",
          o.batch_size);
}

/// "hierarchical" follows the hosts of the run when there are several.
TopologyRule topology_of(const std::string& name, const std::vector<int>& hosts) {
  const bool several =
      std::adjacent_find(hosts.begin(), hosts.end(), std::not_equal_to<>()) != hosts.end();
  if (several && name == "hierarchical") return graph::hierarchical(stencil::ring(), hosts);
  return topology_from(name);
}

/// What the workers must have in common of their optimizers.
std::string agreement(const Options& o) {
  return fmt::format(
      "optimizer {}\nmomentum {}\nnesterov {}\nbeta1 {}\nbeta2 {}\nweight decay {}\n"
      "clip norm {}\naccumulate {}\n",
      o.optimizer, momentum_of(o).value_or(-1), o.nesterov, o.beta1.value_or(-1),
      o.beta2.value_or(-1), o.weight_decay.value_or(-1), o.clip_norm, o.accumulate);
}

train::TrainerOptions trainer_options(const Options& o) {
  train::TrainerOptions trainer;
  trainer.epochs = o.epochs;
  trainer.batch_size = static_cast<std::size_t>(o.batch_size * o.accumulate);
  trainer.seed = o.seed;
  if (o.augment) trainer.augmentation.emplace();
  trainer.shards = data::sharding_from(o.shards);
  trainer.learning_rate = {learning_rate_of(o), train::learning_rate_schedule(o.schedule),
                           o.warmup_epochs};
  trainer.all_reduce = is_all_reduce(o);
  if (!o.out.empty()) trainer.out = o.out;
  trainer.progress = !o.quiet;
  trainer.placement = !o.no_placement;
  trainer.momentum = momentum_of(o);
  trainer.evaluate_every = o.evaluate_every;
  trainer.closing_rounds = closing_rounds_of(o.closing_rounds);
  trainer.validation = o.validation;
  trainer.patience = o.patience;
  trainer.ema_decay = o.ema;
  trainer.checkpoints = checkpoints_of(o);
  trainer.pace = pace_of(o);
  trainer.worker.algorithm = rule_of(o);
  trainer.worker.codec = codec::by_name(o.codec);
  require(!trainer.all_reduce || trainer.worker.codec.kind == codec::Kind::identity,
          ErrorKind::argument,
          "--codec {}: the all-reduce averages exactly; leave the codec out or choose another "
          "exchange",
          o.codec);
  trainer.worker.staleness = staleness_of(o.staleness);
  trainer.worker.remote_path = remote_path_of(o.remote_path);
  trainer.worker.remote_bytes_per_s = o.remote_rate * 1e6 / 8;
  trainer.worker.deadline = Seconds(o.deadline_s);
  trainer.worker.rejoin_after = o.rejoin_after;
  trainer.worker.not_finite = o.nan == "heal" ? NotFinite::heal : NotFinite::abort;
  trainer.worker.suspect_after = Seconds(o.suspect_after_s);
  trainer.worker.must_agree = fmt::format("data {}\nsamples {}\naugment {}\nmodel {}\n", o.data,
                                          o.samples, o.augment, o.model) +
                              agreement(o);
  trainer.worker.log = [](LogLevel, std::string_view text) {
    std::fprintf(stderr, "\n%.*s\n", static_cast<int>(text.size()), text.data());
  };
  return trainer;
}

/// Before hours are spent on what could not be written down.
void check_writable(const std::string& path) {
  require(path.empty() || std::ofstream(path, std::ios::app).good(), ErrorKind::resource,
          "--summary-json: {} cannot be written; choose another file", path);
}

/// One worker, from data to the closing table.
void train_worker(const Group& group, const Options& o) {
  data::Splits data;
  std::unique_ptr<Backend> backend;
  std::optional<TopologyRule> rule;
  std::optional<train::TrainerOptions> trainer;
  agree(group, Deadline(Seconds(o.deadline_s)), "fast-train: starting up", [&] {
    trainer = trainer_options(o);
    if (group.rank() == 0) check_writable(o.summary_json);
    rule = topology_of(o.topology, group.hosts());
    data::LoadOptions load;
    load.limit = o.samples;
    data = data::load(o.data, load);
    backend = backend_of(o, data.train.classes());
  });
  const auto idle = without_effect(o);
  if (!idle.empty() && group.rank() == 0) {
    fmt::print(stderr, "note: without effect in this run: {}\n", fmt::join(idle, ", "));
  }
  const train::Summary summary = train::train(group, *rule, *backend, data, *trainer);
  int first = 0;
  while (std::find(summary.lost.begin(), summary.lost.end(), first) != summary.lost.end()) ++first;
  if (group.rank() != first) return;
  std::fputs(summary.to_table().c_str(), stdout);
  if (!o.summary_json.empty()) summary.write_json(o.summary_json);
}

/// Nothing when only help was asked for.
std::optional<Options> read_options(const Group& ranks, int argc, char** argv) {
  std::optional<Options> options;
  agree(ranks, Deadline(Seconds(60)), "fast-train: reading options", [&] {
    Options read;
    CLI::App app("", "fast-train");
    describe(app, read);
    try {
      app.parse(argc, argv);
      for (const CLI::Option* option : app.parse_order()) read.given.push_back(option->get_name());
      check(read, ranks.size());
      require(ranks.name() != "hybrid" || read.exchange != "shared", ErrorKind::argument,
              "--exchange shared: ranks are on several hosts; start all on one, or take --exchange "
              "hybrid");
      options = read;
    } catch (const CLI::CallForHelp&) {
      if (ranks.rank() == 0) std::fputs(app.help().c_str(), stdout);
    } catch (const CLI::ParseError& error) {
      fail(ErrorKind::argument, "fast-train: {}; --help lists the options", error.what());
    }
  });
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGTERM, SIGUSR2}) std::signal(signal, [](int) { stop_signal = 1; });
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    const Group ranks(world);
    const std::optional<Options> options = read_options(ranks, argc, argv);
    if (!options) return 0;
    if (options->exchange == "local") {
      local::run(options->workers, [&](const Group& group) { train_worker(group, *options); });
    } else {
      if (ranks.size() == 1) {
        std::fputs("one worker; start more with:  mpiexec -n 4 fast-train ...\n", stderr);
      }
      train_worker(ranks, *options);
    }
    return 0;
  });
}
