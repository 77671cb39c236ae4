#include "fast_train/options.hpp"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fast/fast.hpp>

#include "fast_train/settings.hpp"

namespace fast_train {

using namespace fast;

namespace {

/// Of options without a sign: the library behind them would take -1 for 2^64 - 1.
const CLI::Validator whole_number(
    [](const std::string& text) {
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size()) return std::string();
      return fmt::format("\"{}\"; a whole number from 0 to 2^64 - 1 is required", text);
    },
    "");

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
  app.add_option("--samples", o.samples, "train on the first so many samples only; 0: all")
      ->check(whole_number);
  app.add_flag("--augment", o.augment,
               "train on crops of images padded by 4, every other one mirrored");
  app.add_option("--prefetch", o.prefetch,
                 "batches that a thread makes ahead of training [2 for GPUs, else 0]");
  app.add_option("--loader-threads", o.loader_threads, "threads that make a batch");
  app.add_option("--shards", o.shards,
                 "even, or dirichlet:ALPHA: each worker has few labels (the fewer, the smaller "
                 "ALPHA), as of data gathered in different places");
  app.add_flag("--take-over", o.take_over,
               "with --shards dirichlet: neighbors train on the samples of a worker that is gone, "
               "from the next epoch on");
  app.add_option("--model", o.model,
                 "lenet (61,706 parameters), mlp (784-256-10), mlp:A-B-... (hidden widths), lstm "
                 "(24,458; reads 28x28 images row by row), lstm:HIDDEN, resnet20 (272,474, 32x32 "
                 "color images) or resnet50 (224x224 color images)");
  app.add_option("--backend", o.backend,
                 "what computes the model: nn (the library's own), torch (LibTorch) or dlib");
  app.add_option("--device", o.device,
                 "what this worker computes on: cpu, cuda (the workers of a host take its GPUs in "
                 "turn) or cuda:INDEX; workers need not agree");
  app.add_option("--precision", o.precision,
                 "on GPUs: f32, tf32 (factors of products are rounded) or bf16 (so is what layers "
                 "hand on; weights stay f32)");
  app.add_flag("--autotune", o.autotune,
               "on GPUs, measure ways to each convolution and product and take the fastest");
  app.add_flag("--cuda-graph", o.graph, "on GPUs, launch a whole step at once");
  app.add_flag(
      "--deterministic", o.deterministic,
      "on GPUs, leave out ways to convolutions whose results differ in their last bits from "
      "run to run");
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
  app.add_option(
      "--arena", o.arena,
      "fixed, or rotating: weights live in what is published and the optimizer takes part "
      "in the averaging pass, which spares memory traffic (awc or pairwise, identity)");
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
  app.add_option("--seed", o.seed, "of initial weights and sample order")->check(whole_number);
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
                 "rounds between lines of metrics (with --out), besides those of epochs; 0: none")
      ->check(whole_number);
  app.add_option("--out", o.out, "directory for metrics-<rank>.jsonl and mean-model.safetensors");
  app.add_flag(
      "--overwrite", o.overwrite,
      "replace the run that --out or --checkpoints holds; only files that a run writes are "
      "removed");
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

void check_optimizer(const Options& o) {
  const bool sgd = o.optimizer == "sgd";
  require(!brings_momentum(o) || (sgd && *momentum_of(o) == 0), ErrorKind::argument,
          "--algorithm {}: it brings momentum itself, on steps of plain SGD; leave --momentum out "
          "and take --optimizer sgd (its own is --algorithm-option momentum=0.9)",
          o.algorithm);
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
  require(o.precision == "f32" || o.precision == "tf32" || o.precision == "bf16",
          ErrorKind::argument, "--precision: \"{}\" is unknown; choose f32, tf32 or bf16",
          o.precision);
  require(o.prefetch.value_or(0) >= 0, ErrorKind::argument,
          "--prefetch: {}; a number of batches, 0 or more, is required", *o.prefetch);
  require(o.loader_threads >= 1, ErrorKind::argument, "--loader-threads: {}; at least 1 is needed",
          o.loader_threads);
  require(o.workers >= 1, ErrorKind::argument, "--workers: {}; at least 1 is needed", o.workers);
  check_needs(o);
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

}  // namespace

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

}  // namespace fast_train
