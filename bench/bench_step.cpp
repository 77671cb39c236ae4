// A training step with exchange against the same step without: every method trains its own replica,
// a block of steps each in turn. With --slow, the same again beside a worker that is slower.
#include <fmt/core.h>

#include <cmath>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/nn/network.hpp>
#include <fast/nn/optimizer.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <optional>

#include "ranks.hpp"
#include "report.hpp"

using namespace fast;

namespace {

struct Options {
  std::string model = "lenet5", compute = "train", slow;
  std::size_t batch = 64;
  int steps = 20, threads = 1;
  std::vector<std::string> rules{"awc"}, topologies{"ring"}, stalenesses{"0", "inf"},
      codecs{"identity"}, arenas{"fixed", "rotating"};
};

void describe(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, "what is trained; mlp10m has 10 million parameters")
      ->check(CLI::IsMember({"lenet5", "mlp", "mlp10m"}))
      ->capture_default_str();
  app.add_option(
         "--compute", o.compute,
         "train: forward, backward and SGD; sleep:MS: as many parameters, but sleep so long")
      ->capture_default_str();
  bench::add_block(app, o.batch, o.steps);
  app.add_option("--threads", o.threads, "that average a worker's weights")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rule", o.rules, "how neighbors average, each a method")->capture_default_str();
  app.add_option("--topology", o.topologies, "names or files, each a method")
      ->capture_default_str();
  app.add_option("--staleness", o.stalenesses, "numbers of rounds or inf, each a method")
      ->capture_default_str();
  app.add_option("--codec", o.codecs, "what messages look like, each a method")
      ->capture_default_str();
  app.add_option("--arena", o.arenas,
                 "fixed: the optimizer changes weights in place; rotating: it takes part in the "
                 "pass that mixes, of awc with the codec identity; each a method")
      ->check(CLI::IsMember({"fixed", "rotating"}))
      ->capture_default_str();
  app.add_option("--slow", o.slow, "RANK:FACTOR, a worker whose steps take so many times as long");
}

nn::ModelSpec model_of(const std::string& name) {
  if (name == "mlp") return nn::mlp({784, 256, 10});
  return name == "mlp10m" ? nn::mlp({784, 2048, 2048, 2048, 10}) : nn::lenet5();
}

/// A replica's steps, in halves: gradients, then the optimizer on parts of the weights.
class Compute {
 public:
  virtual ~Compute() = default;
  /// The weights of a fixed arena.
  virtual std::span<float> weights() = 0;
  virtual void find_gradients(const float* weights) = 0;
  virtual void update(std::size_t first, std::span<float> part) = 0;
};

/// Random images with random labels, of each worker its own.
class Training : public Compute {
 public:
  Training(const Options& o, int rank)
      : network_(model_of(o.model), 1),
        weights_(network_.parameters()),
        optimizer_(nn::SgdOptions{0.001, 0.9, 0}, network_.parameter_count()) {
    Rng rng(mix_seed(7, static_cast<std::uint64_t>(rank)));
    inputs_.resize(o.batch * 28 * 28);
    for (float& value : inputs_) value = static_cast<float>(rng.uniform());
    labels_.resize(o.batch);
    for (auto& label : labels_) label = static_cast<std::int32_t>(rng.below(10));
  }
  std::span<float> weights() override { return weights_; }
  void find_gradients(const float* weights) override {
    network_.set_parameter_base(const_cast<float*>(weights));  // which gradients only read
    const double loss = network_.loss_and_gradients({inputs_, labels_, {1, 28, 28}});
    require(std::isfinite(loss), ErrorKind::numeric, "bench_step: the loss is {}", loss);
    optimizer_.begin_step();
  }
  void update(std::size_t first, std::span<float> part) override {
    optimizer_.add_delta(first, part, network_.gradients().subspan(first, part.size()));
  }

 private:
  nn::Network<float> network_;
  std::span<float> weights_;
  nn::Optimizer<float> optimizer_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
};

/// A sleep, and a move of a few weights.
class Sleeping : public Compute {
 public:
  Sleeping(const Options& o, int rank, double step_ms)
      : step_ms_(step_ms),
        weights_(nn::parameter_count(model_of(o.model))),
        rng_(mix_seed(7, static_cast<std::uint64_t>(rank))) {}
  std::span<float> weights() override { return weights_; }
  void find_gradients(const float*) override { bench::sleep_ms(step_ms_); }
  void update(std::size_t first, std::span<float> part) override {
    constexpr std::size_t apart = 4099;
    for (std::size_t e = (apart - first % apart) % apart; e < part.size(); e += apart) {
      part[e] += static_cast<float>(rng_.normal());
    }
  }

 private:
  double step_ms_;
  std::vector<float> weights_;
  Rng rng_;
};

std::unique_ptr<Compute> compute_of(const Options& o, int rank) {
  if (o.compute == "train") return std::make_unique<Training>(o, rank);
  double step_ms = 0;
  int used = 0;
  require(std::sscanf(o.compute.c_str(), "sleep:%lf%n", &step_ms, &used) == 1 &&
              static_cast<std::size_t>(used) == o.compute.size() && step_ms > 0,
          ErrorKind::argument, "--compute: \"{}\"; choose train or sleep:MS, MS above 0",
          o.compute);
  return std::make_unique<Sleeping>(o, rank, step_ms);
}

/// Nobody, or one worker.
struct Straggler {
  int rank = -1;
  double factor = 1;
};

Straggler straggler_of(const std::string& text, int workers) {
  Straggler s;
  if (text.empty()) return s;
  int used = 0;
  require(std::sscanf(text.c_str(), "%d:%lf%n", &s.rank, &s.factor, &used) == 2 &&
              static_cast<std::size_t>(used) == text.size() && s.rank >= 0 && s.rank < workers &&
              workers > 1 && s.factor >= 1,
          ErrorKind::argument,
          "--slow: \"{}\"; RANK:FACTOR is required, RANK below {} of two workers or more, FACTOR 1 "
          "or more",
          text, workers);
  return s;
}

/// What a worker measures in a block, a step.
enum Figure { time_ms, wait_ms, mix_ms, reads, fresh, figure_count };
using Figures = std::vector<double>;

/// The healthy workers' means, block by block.
struct Blocks {
  std::vector<double> times_ms;
  Figures sums = Figures(figure_count);
  double mean(Figure figure) const {
    return sums[figure] / static_cast<double>(std::max<std::size_t>(1, times_ms.size()));
  }
};

class Method {
 public:
  Method(const Group& group, const Options& o, std::string name, const std::string& topology,
         const std::string& staleness, const std::string& codec, const std::string& arena)
      : group_(group),
        compute_(compute_of(o, group.rank())),
        update_(
            [this](std::size_t first, std::span<float> part) { compute_->update(first, part); }),
        name_(std::move(name)),
        rotating_(arena == "rotating") {
    WorkerOptions options;
    options.algorithm = algorithm::by_name(name_);
    options.staleness = bench::staleness_of(staleness);
    options.codec = codec::by_name(codec);
    options.mixing_threads = o.threads;
    const bool gossips = name_ != "none" && name_ != "allreduce";
    in_step_ = name_ == "allreduce" || (gossips && options.staleness != unbounded_staleness);
    row_ = {{"topology", gossips ? topology : "-"},
            {"staleness", gossips ? staleness : "-"},
            {"codec", gossips ? codec : "-"},
            {"arena", arena}};
    worker_.emplace(group_, topology_from(topology),
                    std::vector<TensorView>{view_of("x", compute_->weights())}, options);
  }

  const std::string& name() const { return name_; }
  const bench::Row& row() const { return row_; }
  const Blocks& blocks(bool disturbed) const { return blocks_[disturbed ? 1 : 0]; }
  const Worker& worker() const { return *worker_; }

  /// Where nobody waits for a slower worker, that one makes fewer steps and ends with the others.
  void run_block(int steps, const Straggler& slow, bool disturbed, bool counts) {
    const double factor = disturbed && slow.rank == group_.rank() ? slow.factor : 1;
    if (!in_step_) steps = std::max(1, static_cast<int>(std::lround(steps / factor)));
    step(factor);
    bench::start_together(group_);
    const WorkerStats before = worker_->stats();
    const auto begin = Clock::now();
    for (int s = 0; s < steps; ++s) step(factor);
    const double spent_ms = 1e3 * Seconds(Clock::now() - begin).count();
    const WorkerStats after = worker_->stats();
    Figures mine{spent_ms, 1e3 * (after.wait_s - before.wait_s),
                 1e3 * (after.mix_s - before.mix_s + after.publish_s - before.publish_s),
                 static_cast<double>(after.reads - before.reads),
                 static_cast<double>(after.fresh_reads - before.fresh_reads)};
    for (double& figure : mine) figure /= steps;
    const auto all = bench::gather(group_, mine);
    if (counts) add(all, disturbed ? slow.rank : -1, blocks_[disturbed ? 1 : 0]);
  }

  /// All workers' weights at the end; rounds are over.
  double consensus_distance() {
    worker_->await_finish();
    return worker_->consensus_distance();
  }

 private:
  void step(double factor) {
    if (rotating_) {
      worker_->begin_round();
      RotatingArena<float> arena(*worker_);
      find_gradients(arena.weights(), factor);
      arena.end_round(update_);
      return;
    }
    worker_->step([&] {
      find_gradients(compute_->weights().data(), factor);
      compute_->update(0, compute_->weights());
    });
  }

  void find_gradients(const float* weights, double factor) {
    const auto begin = Clock::now();
    compute_->find_gradients(weights);
    if (factor > 1) bench::sleep_ms(1e3 * (factor - 1) * Seconds(Clock::now() - begin).count());
  }

  static void add(const std::vector<Figures>& by_rank, int left_out, Blocks& blocks) {
    const double healthy = static_cast<double>(by_rank.size()) - (left_out >= 0 ? 1 : 0);
    Figures means(figure_count);
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      if (static_cast<int>(rank) == left_out) continue;
      for (int f = 0; f < figure_count; ++f) means[f] += by_rank[rank][f] / healthy;
    }
    blocks.times_ms.push_back(means[time_ms]);
    for (int f = 0; f < figure_count; ++f) blocks.sums[f] += means[f];
  }

  Group group_;
  std::unique_ptr<Compute> compute_;
  PartUpdate<float> update_;
  std::string name_;
  bool rotating_;
  bool in_step_;  ///< every worker makes as many steps
  bench::Row row_;
  std::optional<Worker> worker_;
  Blocks blocks_[2];  ///< without and with a straggler
};

std::vector<std::unique_ptr<Method>> methods_of(const Group& group, const Options& o) {
  std::vector<std::unique_ptr<Method>> methods;
  const auto add = [&](auto&&... of) {
    methods.push_back(std::make_unique<Method>(group, o, of...));
  };
  add("none", o.topologies.front(), "0", "identity", "fixed");
  for (const auto& rule : o.rules)
    for (const auto& topology : o.topologies)
      for (const auto& staleness : o.stalenesses)
        for (const auto& codec : o.codecs)
          for (const auto& arena : o.arenas)
            if (arena == "fixed" || (rule == "awc" && codec == "identity"))
              add(rule, topology, staleness, codec, arena);
  add("allreduce", o.topologies.front(), "0", "identity", "fixed");
  return methods;
}

/// All workers' replicas must be equal after all-reduces, and nearer to each other after exchanges
/// than without.
double verified_distance(Method& method, double alone, int workers) {
  const double distance = method.consensus_distance();
  require(std::isfinite(distance), ErrorKind::internal,
          "bench_step: the consensus distance of {} is {}", method.name(), distance);
  if (workers == 1 || method.name() == "none") return distance;
  require(method.name() == "allreduce" ? distance == 0 : distance < alone, ErrorKind::internal,
          "bench_step: the consensus distance of {} is {}, {} without exchange", method.name(),
          distance, alone);
  return distance;
}

void report_method(bench::Report& report, const Method& method, const Method& alone,
                   double distance, const Options& o) {
  const int workers = method.worker().size();
  const double undisturbed_ms = bench::timing_of(method.blocks(false).times_ms).median_ms;
  for (const bool disturbed : {false, true}) {
    const Blocks& blocks = method.blocks(disturbed);
    if (blocks.times_ms.empty()) continue;
    const bench::Timing timing = bench::timing_of(blocks.times_ms);
    bench::Row row = method.row();
    row.update({{"workers", workers},
                {"bytes", method.worker().layout().size_bytes()},
                {"model", o.model},
                {"compute", o.compute},
                {"slow", disturbed ? o.slow : "-"},
                {"of_none",
                 timing.median_ms / bench::timing_of(alone.blocks(disturbed).times_ms).median_ms}});
    if (disturbed) row["rate_kept"] = undisturbed_ms / timing.median_ms;
    if (blocks.mean(reads) > 0) row["fresh"] = blocks.mean(fresh) / blocks.mean(reads);
    row["waiting_ms"] = blocks.mean(wait_ms);
    row["mixing_ms"] = blocks.mean(mix_ms);
    row["consensus"] = distance;
    report.add(method.name(), row, timing);
  }
}

int run(const Group& group, int argc, char** argv) {
  Options o;
  bench::Report report("bench_step");
  CLI::App app{"A training step with exchange against the same without; start with mpiexec",
               "bench_step"};
  describe(app, o);
  report.add_options(app);
  if (!bench::parse(group, app, argc, argv)) return 0;
  Straggler slow;
  agree(group, Deadline(Seconds(60)), "bench_step: reading options", [&] {
    slow = straggler_of(o.slow, group.size());
    compute_of(o, group.rank());
    for (const auto& text : o.stalenesses) bench::staleness_of(text);
    for (const auto& name : o.codecs) codec::by_name(name);
    for (const auto& name : o.rules) algorithm::by_name(name);
    for (const auto& name : o.topologies) topology_from(name);
  });
  const auto methods = methods_of(group, o);
  for (int repeat = -1; repeat < report.repeats(); ++repeat) {
    for (const auto& method : methods) {
      method->run_block(o.steps, slow, false, repeat >= 0);
      if (slow.rank >= 0) method->run_block(o.steps, slow, true, repeat >= 0);
    }
  }
  double alone = 0;
  for (const auto& method : methods) {
    const double distance = verified_distance(*method, alone, group.size());
    if (method == methods.front()) alone = distance;
    report_method(report, *method, *methods.front(), distance, o);
  }
  return group.rank() == 0 ? report.finish() : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv,
                  [&](const mpi::Communicator& world) { return run(Group(world), argc, argv); });
}
