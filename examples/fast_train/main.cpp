// fast-train: trains a classifier with one replica a worker, each averaging with its neighbours.
#include <fmt/ranges.h>
#include <csignal>
#include <cstdio>
#include <fast/data/load.hpp>
#include <fast/fast.hpp>
#include <fast/train/trainer.hpp>
#include <fstream>
#include <optional>

#include "fast_train/options.hpp"
#include "fast_train/settings.hpp"

namespace {

using namespace fast;
using fast_train::Options;

/// Set by the signals of pre-emption.
volatile std::sig_atomic_t stop_signal = 0;

/// Before hours are spent on what could not be written down.
void check_writable(const std::string& path) {
  require(path.empty() || std::ofstream(path, std::ios::app).good(), ErrorKind::resource,
          "--summary-json: {} cannot be written; choose another file", path);
}

/// One worker, from data to the closing table.
void train_worker(const Group& group, const Options& o) {
  data::Splits data;
  backends::OnDevice replica;
  std::optional<TopologyRule> rule;
  std::optional<train::TrainerOptions> trainer;
  agree(group, Deadline(Seconds(o.deadline_s)), "fast-train: starting up", [&] {
    trainer = fast_train::trainer_options(o);
    trainer->checkpoints.stop_requested = [] { return stop_signal != 0; };
    if (group.rank() == 0) check_writable(o.summary_json);
    rule = fast_train::topology_of(o.topology, group.hosts());
    data::LoadOptions load;
    load.limit = o.samples;
    data = data::load(o.data, load);
    replica = fast_train::backend_of(o, data.train, group);
    trainer->device = replica.device;
    trainer->prefetch.memory = replica.memory;
  });
  const auto idle = fast_train::without_effect(o);
  if (!idle.empty() && group.rank() == 0) {
    fmt::print(stderr, "note: without effect in this run: {}\n", fmt::join(idle, ", "));
  }
  const train::Summary summary = train::train(group, *rule, *replica.backend, data, *trainer);
  const int first = summary.parts.empty() ? 0 : summary.parts.front().front();
  if (group.rank() != first) return;
  std::fputs(summary.to_table().c_str(), stdout);
  if (!o.summary_json.empty()) summary.write_json(o.summary_json);
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGTERM, SIGUSR2}) std::signal(signal, [](int) { stop_signal = 1; });
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    const Group ranks(world);
    const std::optional<Options> options = fast_train::read_options(ranks, argc, argv);
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
