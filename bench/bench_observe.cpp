// What observers cost a training step: LeNet under awc, a replica for each set of observers, blocks
// of steps in turn. Each block is compared with that of no observer beside it.
#include <fmt/core.h>

#include <cmath>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/nn/network.hpp>
#include <fast/nn/optimizer.hpp>
#include <fast/observe/prometheus.hpp>
#include <fast/observe/tensorboard.hpp>
#include <fast/observe/trace.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <filesystem>
#include <optional>

#include "ranks.hpp"
#include "report.hpp"

using namespace fast;

namespace {

struct Options {
  std::string directory;
  int port = 0;
  std::size_t batch = 64;
  int steps = 50;
};

/// LeNet on random images.
class Training {
 public:
  explicit Training(std::size_t batch)
      : network_(nn::lenet5(), 1),
        optimizer_(nn::SgdOptions{0.001, 0.9, 0}, network_.parameter_count()) {
    Rng rng(7);
    inputs_.resize(batch * 28 * 28);
    for (float& value : inputs_) value = static_cast<float>(rng.uniform());
    labels_.resize(batch);
    for (auto& label : labels_) label = static_cast<std::int32_t>(rng.below(10));
  }
  std::span<float> weights() { return network_.parameters(); }
  double step() {
    const double loss = network_.loss_and_gradients({inputs_, labels_, {1, 28, 28}});
    optimizer_.begin_step();
    optimizer_.add_delta(0, network_.parameters(), network_.gradients());
    return loss;
  }

 private:
  nn::Network<float> network_;
  nn::Optimizer<float> optimizer_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
};

class Method {
 public:
  Method(const Group& group, const Options& o, std::string name, std::shared_ptr<Observer> observer)
      : group_(group), name_(std::move(name)), observer_(std::move(observer)), training_(o.batch) {
    WorkerOptions options;
    options.observer = observer_;
    worker_.emplace(group_, stencil::ring(),
                    std::vector<TensorView>{view_of("x", training_.weights())}, options);
  }

  const std::string& name() const { return name_; }
  const std::vector<double>& steps_ms() const { return steps_ms_; }

  /// The workers' mean.
  void run_block(int steps, bool counts) {
    step();
    bench::start_together(group_);
    const auto began = Clock::now();
    for (int s = 0; s < steps; ++s) step();
    const double mine_ms = 1e3 * Seconds(Clock::now() - began).count() / steps;
    double sum_ms = 0;
    for (const auto& one : bench::gather(group_, {mine_ms})) sum_ms += one[0];
    if (counts) steps_ms_.push_back(sum_ms / group_.size());
  }

 private:
  /// As the Trainer does, numbers seldom.
  void step() {
    double loss = 0;
    worker_->step([&] { return loss = training_.step(); });
    if (observer_ && worker_->round() % 100 == 0) {
      observer_->on_scalar({"train/loss", loss, group_.rank(), worker_->round(), Clock::now()});
    }
  }

  Group group_;
  std::string name_;
  std::shared_ptr<Observer> observer_;
  Training training_;
  std::optional<Worker> worker_;
  std::vector<double> steps_ms_;
};

std::vector<std::unique_ptr<Method>> methods_of(const Group& group, const Options& o) {
  const std::filesystem::path directory = o.directory;
  const int rank = group.rank();
  const auto board = [&](const char* run) {
    return observe::tensorboard(directory / run / std::to_string(rank));
  };
  const auto serve = [&](int port) { return observe::prometheus(port + rank, rank); };
  std::vector<std::unique_ptr<Method>> methods;
  const auto add = [&](const char* name, std::shared_ptr<Observer> observer) {
    methods.push_back(std::make_unique<Method>(group, o, name, std::move(observer)));
  };
  add("none", nullptr);
  add("none again", nullptr);
  add("tensorboard", board("one"));
  add("trace", observe::trace(directory / "one", rank));
  add("prometheus", serve(o.port));
  add("all", all_of({board("all"), observe::trace(directory / "all", rank),
                     serve(o.port + group.size())}));
  return methods;
}

/// The geometric mean of the blocks' ratios, and half of its 95 % confidence interval. (The
/// arithmetic mean of ratios would be above 1 for two methods that take equally long.)
std::pair<double, double> ratio_of(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += std::log(a[k] / b[k]);
  const double mean = sum / count;
  for (std::size_t k = 0; k < a.size(); ++k) squares += std::pow(std::log(a[k] / b[k]) - mean, 2);
  const double ratio = std::exp(mean);
  return {ratio, 1.96 * ratio * std::sqrt(squares / (count - 1) / count)};
}

int run(const Group& group, int argc, char** argv) {
  Options o;
  bench::Report report("bench_observe", 31);
  CLI::App app{"What observers cost a training step; start with mpiexec", "bench_observe"};
  app.add_option("directory", o.directory, "where files are written")->required();
  app.add_option("--port", o.port, "the first of twice as many ports as ranks")->required();
  bench::add_block(app, o.batch, o.steps);
  report.add_options(app);
  if (!bench::parse(group, app, argc, argv)) return 0;
  const auto methods = methods_of(group, o);
  for (int repeat = -1; repeat < report.repeats(); ++repeat) {
    for (const auto& method : methods) method->run_block(o.steps, repeat >= 0);
  }
  const std::vector<double>& alone = methods.front()->steps_ms();
  for (const auto& method : methods) {
    const auto [ratio, within] = ratio_of(method->steps_ms(), alone);
    report.add(method->name(),
               {{"workers", group.size()}, {"of_none", ratio}, {"plus_minus", within}},
               bench::timing_of(method->steps_ms()));
  }
  return group.rank() == 0 ? report.finish() : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv,
                  [&](const mpi::Communicator& world) { return run(Group(world), argc, argv); });
}
