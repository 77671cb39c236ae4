// fast-train: trains a model with one replica a worker, each averaging with its neighbors.
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fast/data/load.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/fast.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/topology/load.hpp>
#include <fast/train/shared_data.hpp>
#include <fast/train/trainer.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_ranks.hpp"
#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/toml.hpp"
#include "core/whole_file.hpp"
#include "data/options/rows.hpp"
#include "fast_train/automatic_topology.hpp"
#include "fast_train/capacity.hpp"
#include "fast_train/clocks.hpp"
#include "fast_train/init_weights.hpp"
#include "fast_train/read_options.hpp"
#include "fast_train/settings.hpp"
#include "fast_train/stream_data.hpp"
#include "fast_train/targets.hpp"
#include "fast_train/trial_steps.hpp"
#include "mpi/launcher.hpp"
#include "nn/shape.hpp"
#include "saved_model.hpp"
#include "sites/site_figures.hpp"

namespace {

using namespace fast;
using fast_train::Options;

/// Set by the signals of pre-emption, and by Ctrl-C.
std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Data are read, of which nothing has to be saved.
std::atomic<bool> is_loading{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// In a handler of the signal: the process ends by it when the handler returns.
void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// A second Ctrl-C ends at once. So does the first signal while data are read: that may take long.
void ask_to_stop(int signal) {
  if (is_loading) return end_by(signal);
  const bool again = stop_asked.exchange(true);
  if (signal == SIGINT && again) end_by(signal);
}

/// As long as this exists, signals end the process. One that came before does so now.
class Loading {
 public:
  Loading() {
    is_loading = true;
    if (stop_asked) end_by(SIGTERM);
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;
  ~Loading() { is_loading = false; }
};

/// The loss says what targets are, unless --target-type does.
data::TargetKind targets_of(const Options& o) {
  const data::TargetKind kind = o.load.targets;
  if (kind != data::TargetKind::automatic) return kind;
  if (o.loss == nn::Loss::cross_entropy) return data::TargetKind::classes;
  if (o.loss == nn::Loss::mse || o.loss == nn::Loss::huber) return data::TargetKind::numbers;
  return kind;
}

data::LoadOptions load_options(const Options& o) {
  data::LoadOptions load = o.load;
  if (load.resize == data::size_of_model) load.resize = fast_train::image_size_of_model(o);
  if (fast_train::is_stream(o)) load.limit = 0;
  load.targets = targets_of(o);
  return load;
}

/// Of a stream: what --test-data names.
data::Splits load_data(Options o, int workers) {
  if (fast_train::is_stream(o)) {
    data::LoadOptions load = load_options(o);
    load.test_data.clear();
    if (o.batch_fits && o.load.limit > 0)
      o.batch_size = std::clamp<std::size_t>(fast_train::largest_batch(o, o.load.limit, workers), 1,
                                             o.batch_size);
    fast_train::check_counts(o, o.load.limit);
    return data::load(o.load.test_data, load);
  }
  data::Splits data = data::load(o.data, load_options(o));
  fast_train::fit_batch(o, data.train, workers);
  if (!o.requests.describe) fast_train::check_counts(o, data.train.size());
  return data;
}

/// Of the workers of this rank's host, which all take its memory. A spare takes a lost worker's.
int workers_here(const Group& ranks, int spares) {
  const std::vector<int> hosts = ranks.hosts();
  const int own = hosts[static_cast<std::size_t>(ranks.rank())];
  return static_cast<int>(std::count(hosts.begin(), hosts.end() - spares, own));
}

/// That train.
int workers_of(const Group& ranks, const Options& o) {
  return o.exchange == "local" ? o.workers : ranks.size() - o.spares;
}

/// One copy for all threads of a process, and for all processes of a host.
data::Splits data_of(const Group& ranks, const Options& o) {
  const Loading loading;
  const std::string source =
      fmt::format("{} {} {} {} {}\n{}", o.load.limit, o.data, static_cast<int>(targets_of(o)),
                  o.model, o.load.scale_targets, data::text_of(o.load));
  data::Splits data = train::load_once_a_host(ranks, source, Deadline(o.trainer.worker.deadline),
                                              [&] { return load_data(o, workers_of(ranks, o)); });
  return fast_train::is_stream(o) ? fast_train::stream_splits(o, std::move(data)) : data;
}

void check_start(const Group& ranks, const Options& o) {
  agree(ranks, Deadline(o.trainer.worker.deadline), "fast-train: starting up", [&] {
    fast_train::check_stream(o);
    if (ranks.rank() == 0) {
      for (const std::string& notice : fast_train::stream_notices(o))
        fast::say("warning: {}\n", notice);
    }
    fast_train::trainer_options(o);
    require(o.spares < ranks.size(), ErrorKind::argument,
            "--spares {}: {} ranks were started, and at least one must train; start more with "
            "fastrun --spares",
            o.spares, ranks.size());
    if (ranks.rank() == 0 && !o.summary_json.empty()) require_writable(o.summary_json);
    topology_on_hosts(o.topology, ranks.hosts());
  });
}

/// The model. Checks that model and data fit each other and this host.
nn::ModelSpec fit(const Group& ranks, const Options& o, data::Splits& data) {
  nn::ModelSpec spec;
  agree(ranks, Deadline(o.trainer.worker.deadline), "fast-train: starting up", [&] {
    const int workers = o.exchange == "local" ? o.workers : workers_here(ranks, o.spares);
    spec = fast_train::model_for(o, data.train);
    fast_train::check_targets(data, spec.loss.kind, fast_train::shown_data(o));
    fast_train::check_capacity(o, spec, workers);
    require(nn::tokens_of(spec) == 0 || o.trainer.mixup == 0, ErrorKind::argument,
            "--mixup {}: the model takes tokens, which cannot be mixed; leave it out",
            o.trainer.mixup);
    if (nn::tokens_of(spec) > 0)
      data.normalization = data.normalization.of_tokens(data.train.is_bytes());
  });
  const std::string warning = fast_train::warning_of_targets(data.train, spec.loss.kind);
  if (!warning.empty() && ranks.rank() == 0) fast::say("warning: {}\n", warning);
  return spec;
}

/// What must be the same on hosts that read files of their own.
std::string agreement(const data::Splits& data) {
  const data::Dataset& train = data.train;
  return fmt::format(
      "data: {} samples [{}] to train in {} shards, {} to test, {} classes, targets [{}]\n"
      "data: mean {:a}, standard deviation {:a}, origins {:a}, targets' {:a} and {:a}\n",
      train.size(), fmt::join(train.sample_shape(), "x"), train.shards().size(), data.test.size(),
      train.classes(), fmt::join(train.target_shape(), "x"),
      fmt::join(data.normalization.mean, " "), fmt::join(data.normalization.stddev, " "),
      fmt::join(data.normalization.origins, " "), fmt::join(data.normalization.target_mean, " "),
      fmt::join(data.normalization.target_stddev, " "));
}

/// --topology auto, after the choice by hosts.
void choose_topology(const mpi::Communicator& world, const Group& ranks,
                     const std::optional<ChosenTopology>& usual, const nn::ModelSpec& spec,
                     const data::Splits& data, Options& o) {
  fast_train::Trial trial;
  trial.hosts = fast_train::hosts_of_workers(ranks, o);
  trial.payload_bytes = sizeof(float) * static_cast<double>(nn::parameter_count(spec));
  trial.steps = [&](Seconds budget) {
    return fast_train::trial_steps(o, spec, data.train, ranks, budget);
  };
  fast_train::choose_by_links(world, ranks, usual, trial, o);
}

/// In place of training.
int describe_model(const Group& ranks, const Options& o) {
  const data::Splits data = data_of(ranks, o);
  agree(ranks, Deadline(o.trainer.worker.deadline), "fast-train: describing the model", [&] {
    const std::string text = nn::describe(fast_train::model_for(o, data.train));
    if (ranks.rank() == 0) std::fputs(text.c_str(), stdout);
  });
  return 0;
}

/// Does `write` on worker `first`. What fails there fails on all. If a worker is lost meanwhile,
/// the others have ended well; the next one writes if it was the first.
void write_together(const Group& group, const Options& o, int first,
                    const std::function<void()>& write) {
  const auto write_if_first = [&] {
    if (group.rank() == first) write();
  };
  try {
    agree(group, Deadline(o.trainer.worker.deadline), "fast-train: writing results",
          write_if_first);
  } catch (const Error& error) {
    if (!is_of_a_loss(group, error)) throw;
    const std::vector<int> died = group.died();
    if (!contains(died, first)) return;
    while (contains(died, first)) ++first;
    write_if_first();
  }
}

/// Of the site that this job is, if it is one.
std::string site_table(const train::TrainerOptions& trainer) {
  std::string table;
  if (!trainer.worker.site) return table;
  for (const auto& [name, text] : sites::rows_of(sites::stats_of(*trainer.worker.site)))
    table += fmt::format("  {:<28}  {}\n", name, text);
  return table;
}

/// The closing table, by the worker that speaks for the run. False, on every worker that can know,
/// when not all that was asked for has been saved.
bool report(const Group& group, const Options& o, const train::Summary& summary,
            const std::string& of_site) {
  const int first = summary.parts.empty() ? 0 : summary.parts.front().front();
  const auto write = [&] {
    std::fputs((o.quiet ? summary.to_table() : summary.results_table()).c_str(), stdout);
    std::fputs(of_site.c_str(), stdout);
    std::fflush(stdout);
    if (!o.summary_json.empty()) summary.write_json(o.summary_json);
  };
  if (summary.same_workers()) {
    write_together(group, o, first, write);
  } else if (group.rank() == first) {
    write();
  }
  if (summary.unsaved.empty()) return true;
  if (group.rank() == first) fast::say("error: not saved: {}\n", summary.unsaved);
  return false;
}

/// --init-weights, on this worker. All begin with worker 0's, unless --initial as_is is given.
void take_initial_weights(const Group& group, const Options& o, Backend& backend,
                          const LogSink& log) {
  if (o.init_weights.empty()) return;
  const serve::Weights weights =
      serve::read_weights(o.init_weights, group.rank() == 0 ? log : LogSink());
  fast_train::NameMap map;
  if (!o.init_map.empty())
    map = fast_train::read_name_map(text_of_file(o.init_map, "--init-map", "give a file of names"),
                                    o.init_map);
  const std::string said =
      fast_train::init_weights(weights.tensors, backend.parameters(), weights.source, map);
  if (group.rank() == 0) fast::say("{}\n", said);
}

/// One worker, from its replica to the closing table: the exit status.
int train_worker(const Group& group, const Options& o, const data::Splits& data,
                 const nn::ModelSpec& spec) {
  backends::OnDevice replica;
  train::TrainerOptions trainer = fast_train::trainer_options(o);
  trainer.names.loss = nn::name(spec.loss.kind);
  trainer.names.huber_delta = spec.loss.delta;
  trainer.worker.must_agree += agreement(data);
  trainer.checkpoints.stop_requested = [] { return stop_asked.load(); };
  trainer.leave_requested = mpi::asked_to_leave;
  agree(group.everyone(), Deadline(o.trainer.worker.deadline), "fast-train: starting up", [&] {
    replica = fast_train::backend_of(o, spec, group);
    take_initial_weights(group, o, *replica.backend, trainer.worker.log);
    trainer.device = replica.device;
    trainer.prefetch.memory = replica.memory;
    if (fast_train::is_stream(o))
      trainer.stream =
          fast_train::open_stream(o, data.train, group.rank(), trainer.worker.log, spec);
  });
  const TopologyRule rule = topology_on_hosts(o.topology, group.hosts());
  // By all ranks, also if their options differ: the Trainer finds that out.
  fast_train::Clocks clocks(group, o.trainer.worker.deadline);
  trainer.clock_offset_s = clocks.offset_s();
  if (o.trace) trainer.make_observer = clocks.telling(std::move(trainer.make_observer));
  const train::Summary summary = train::train(group, rule, *replica.backend, data, trainer);
  if (!group.has_seat() || summary.has_left) return 0;
  if (o.trace) clocks.finish(summary);
  return report(group, o, summary, site_table(trainer)) ? 0 : 1;
}

int run(const mpi::Communicator& world, int argc, char** argv) {
  const Group ranks(world);
  std::optional<Options> options = fast_train::read_options(ranks, argc, argv);
  if (!options) return 0;
  const auto usual_topology = fast_train::choose_by_hosts(ranks, *options);
  check_start(ranks, *options);
  if (options->requests.describe) return describe_model(ranks, *options);
  if (options->exchange != "local" && ranks.size() == 1) {
    fast::say("one worker; start more with:  {} -n 4 fast-train ...\n",
              mpi::launcher_reports_ends() ? "fastrun" : "mpiexec");
  }
  data::Splits data = data_of(ranks, *options);
  const std::string fitted =
      fast_train::fit_batch(*options, data.train, workers_of(ranks, *options));
  if (!fitted.empty() && ranks.rank() == 0) fast::say("{}\n", fitted);
  const nn::ModelSpec spec = fit(ranks, *options, data);
  choose_topology(world, ranks, usual_topology, spec, data, *options);
  fast_train::name_run(ranks, *options);
  if (options->exchange == "local") {
    std::atomic<int> status{0};
    local::run(options->workers, [&](const Group& group) {
      if (train_worker(group, *options, data, spec) != 0) status = 1;
    });
    return status.load();
  }
  return train_worker(with_spares(ranks, options->spares), *options, data, spec);
}

}  // namespace

int main(int argc, char** argv) {
  tools::fill_streams();
  if (const auto page = tools::requested_page(fast_train::command_line, argc, argv)) {
    std::fputs(page->c_str(), stdout);  // without MPI: a build calls this
    return tools::with_output(0);
  }
  for (const int signal : {SIGTERM, SIGINT, SIGUSR2}) std::signal(signal, ask_to_stop);
  return tools::run_ranks(argc, argv,
                          [&](const mpi::Communicator& world) { return run(world, argc, argv); });
}
