// Model parallel beside data parallel: each replica's layers are divided among ranks, its stages,
// and the ranks with the same stage average their weights with their neighbors.
//   mpiexec -n 4 pipeline                 2 stages x 2 replicas
//   mpiexec -n 2 pipeline --whole         the same training with whole models: the same losses
//   mpiexec -n 4 pipeline --compare 9     what the stages cost
// docs/how-to/model-parallel.md explains it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/load.hpp>
#include <fast/train/model_metadata.hpp>
#include <fstream>
#include <numeric>

#include "pipeline/runs.hpp"

using namespace fast;

namespace pipeline {
namespace {

constexpr int steps_at_end = 10;    // whose mean loss is printed
constexpr int steps_of_block = 10;  // of --compare
constexpr Seconds long_wait{600};

/// The losses of a replica, printed by one rank of it.
class Losses {
 public:
  Losses(const Settings& settings, int replica) : every_(settings.losses), replica_(replica) {}
  void add(double loss) {
    all_.push_back(loss);
    if (every_) std::printf("replica %d step %zu loss %.9f\n", replica_, all_.size(), loss);
    std::fflush(stdout);
  }
  double latest() const {
    const std::size_t count = std::min<std::size_t>(all_.size(), steps_at_end);
    return std::accumulate(all_.end() - static_cast<std::ptrdiff_t>(count), all_.end(), 0.0) /
           static_cast<double>(count);
  }

 private:
  bool every_;
  int replica_;
  std::vector<double> all_;
};

void save(SplitRun& run, const Settings& settings) {
  std::deque<std::vector<float>> memory;
  const auto all = run.pipeline().gather(run.pipeline().tensors(), memory);
  if (all.empty()) return;
  train::ModelMetadata note;
  note.model = settings.model;
  note.input = {1, 28, 28};
  note.classes = 10;
  train::save_safetensors(settings.save, all, train::to_metadata(note));
}

void report(SplitRun& run, const Task& task, const Losses& losses) {
  data::Loader loader(task.test, data::Normalization{}, task.test.size());
  run.take_mean_model();
  if (const auto result = run.pipeline().evaluate(loader.batch(0, 0))) {
    std::printf(
        "replica %d of %d: loss %.4f; the mean model tells %.1f %% of the test samples right\n",
        run.replica(), run.replicas(), losses.latest(),
        100.0 * static_cast<double>(result->correct) / static_cast<double>(task.test.size()));
  }
}

int train_in_stages(const mpi::Communicator& world, const Settings& settings, const Task& task) {
  SplitRun run(world, settings, task);
  Losses losses(settings, run.replica());
  for (int step = 0; step < settings.steps; ++step) {
    if (const auto loss = run.step()) losses.add(*loss);
  }
  const bool is_first = run.finish();
  report(run, task, losses);
  if (is_first && !settings.save.empty()) save(run, settings);
  run.part();
  return 0;
}

int train_whole(const mpi::Communicator& world, const Settings& settings, const Task& task) {
  WholeRun run(world, settings, task);
  Losses losses(settings, world.rank());
  for (int step = 0; step < settings.steps; ++step) losses.add(run.step());
  run.finish();
  std::printf("replica %d of %d: loss %.4f\n", world.rank(), world.size(), losses.latest());
  return 0;
}

/// Milliseconds of a step, between barriers of all ranks.
template <class Step>
double time_block(const mpi::Communicator& world, const Step& step) {
  world.barrier(Deadline(long_wait), "timing");
  const auto begin = Clock::now();
  for (int i = 0; i < steps_of_block; ++i) step();
  world.barrier(Deadline(long_wait), "timing");
  return 1000 * Seconds(Clock::now() - begin).count() / steps_of_block;
}

std::string spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", median, values.front(), values.back());
}

/// Blocks of steps in stages and with whole models take turns: whatever slows the machine slows
/// both. Other ranks sleep while the replicas compute whole models.
int compare(const mpi::Communicator& world, const Settings& settings, const Task& task) {
  SplitRun split(world, settings, task);
  const bool computes = world.rank() < split.replicas();
  const mpi::Communicator part = world.split(computes ? 0 : 1, Deadline(long_wait));
  std::optional<WholeRun> whole;
  if (computes) whole.emplace(part, settings, task);
  const auto in_stages = [&] { split.step(); };
  const auto in_one = [&] {
    if (whole) whole->step();
  };
  time_block(world, in_stages);
  time_block(world, in_one);
  std::vector<double> stages_ms, whole_ms, ratios;
  for (int pair = 0; pair < settings.compare; ++pair) {
    stages_ms.push_back(time_block(world, in_stages));
    whole_ms.push_back(time_block(world, in_one));
    ratios.push_back(stages_ms.back() / whole_ms.back());
  }
  split.finish();
  if (whole) whole->finish();
  if (world.rank() == 0)
    std::printf(
        "median (least to most) of %d blocks of %d steps, %d replicas of %zu stages:\n"
        "  in stages, %d ranks    %s ms a step\n"
        "  whole, %d ranks        %s ms a step\n"
        "  ratio of neighboring blocks    %s\n",
        settings.compare, steps_of_block, split.replicas(), settings.cuts.size() + 1, world.size(),
        spread(stages_ms).c_str(), split.replicas(), spread(whole_ms).c_str(),
        spread(ratios).c_str());
  return 0;
}

/// Bad input is the same on all ranks: all throw, and one reports.
Settings read_settings(const mpi::Communicator& world, int argc, char** argv) {
  Settings settings;
  agree(Group(world), Deadline(long_wait), "reading the options", [&] {
    settings = settings_from(argc, argv);
    plan_of(settings);
    (void)worker_options(settings);
    topology_by_name(settings.topology);
    require(settings.save.empty() || world.rank() != 0 ||
                std::ofstream(settings.save, std::ios::app).good(),
            ErrorKind::resource, "--save: {} cannot be written; choose another file",
            settings.save);
  });
  return settings;
}

int run(const mpi::Communicator& world, int argc, char** argv) {
  const Settings settings = read_settings(world, argc, argv);
  const Task task = make_task(settings.seed);
  agree(Group(world), Deadline(long_wait), "dividing the samples",
        [&] { check_batches(world, settings, task); });
  if (settings.whole) return train_whole(world, settings, task);
  if (settings.compare > 0) return compare(world, settings, task);
  return train_in_stages(world, settings, task);
}

}  // namespace
}  // namespace pipeline

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(pipeline::usage, stdout);
    return 0;
  }
  return mpi::run(argc, argv,
                  [&](const mpi::Communicator& world) { return pipeline::run(world, argc, argv); });
}
