// What one bad worker of eight does to the accuracy of the others, with and without robust
// averaging: perceptrons on made-up classes, every worker with samples of its own.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/worker.hpp>
#include <numeric>

#include "report.hpp"

using namespace fast;

namespace {

constexpr int workers = 8, bad = 3, classes = 10;
constexpr std::size_t features = 32;
constexpr std::size_t batch_size = 16;

struct Options {
  int epochs = 20, seeds = 3;
  std::size_t samples = 160;  ///< of each worker
  double noise = 2.2, rate = 0.05;
  std::vector<std::string> topologies{"ring", "torus2d", "complete"};
  std::vector<std::string> attacks{"none", "noise", "sign flip", "scale", "dissensus", "alie"};
  std::vector<std::string> methods{"none", "clip", "trimmed_mean"};
};

void describe(CLI::App& app, Options& o) {
  app.add_option("--epochs", o.epochs)->capture_default_str();
  app.add_option("--seeds", o.seeds, "runs of each kind")->capture_default_str();
  app.add_option("--samples", o.samples, "of each worker, for training")->capture_default_str();
  app.add_option("--noise", o.noise, "standard deviation of samples of a class")
      ->capture_default_str();
  app.add_option("--rate", o.rate, "learning rate")->capture_default_str();
  app.add_option("--topology", o.topologies)->capture_default_str();
  app.add_option("--attack", o.attacks)->capture_default_str();
  app.add_option("--robust", o.methods)->capture_default_str();
}

using Model = std::vector<float>;
using Models = std::vector<Model>;

/// What the bad worker knows: the weights of all after the step of this round.
struct Stage {
  Models models{static_cast<std::size_t>(workers)};
  Topology topology;

  Model mean_of(const std::vector<int>& some) const {
    Model mean(models[0].size());
    for (const int worker : some) {
      const Model& model = models[static_cast<std::size_t>(worker)];
      for (std::size_t e = 0; e < mean.size(); ++e)
        mean[e] += model[e] / static_cast<float>(some.size());
    }
    return mean;
  }
};

std::vector<int> good_workers() {
  std::vector<int> all(workers);
  std::iota(all.begin(), all.end(), 0);
  std::erase(all, bad);
  return all;
}

/// He, Karimireddy, Jaggi 2022, definition of the attack: what its neighbor would move by without
/// it, reversed and enlarged by 1.5.
Model dissensus(const Stage& stage) {
  const int target = stage.topology.out_neighbors(bad).front();
  const MixingRow row = mixing_row(stage.topology, target);
  const Model& at = stage.models[static_cast<std::size_t>(target)];
  Model move(at.size());
  double of_bad = 0;
  for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
    if (row.neighbors[k] == bad) {
      of_bad = row.weights[k];
      continue;
    }
    const Model& other = stage.models[static_cast<std::size_t>(row.neighbors[k])];
    for (std::size_t e = 0; e < at.size(); ++e)
      move[e] += static_cast<float>(row.weights[k]) * (other[e] - at[e]);
  }
  Model sent = at;
  for (std::size_t e = 0; e < at.size(); ++e) sent[e] -= static_cast<float>(1.5 / of_bad) * move[e];
  return sent;
}

/// A little is enough (Baruch et al. 2019, arXiv 1902.06156): the mean of the good workers, less
/// 1.5 standard deviations of each weight.
Model alie(const Stage& stage) {
  const std::vector<int> good = good_workers();
  Model sent = stage.mean_of(good);
  for (std::size_t e = 0; e < sent.size(); ++e) {
    double squares = 0;
    for (const int worker : good) {
      const double off = stage.models[static_cast<std::size_t>(worker)][e] - sent[e];
      squares += off * off;
    }
    sent[e] -= static_cast<float>(1.5 * std::sqrt(squares / static_cast<double>(good.size() - 1)));
  }
  return sent;
}

Model sent_by(const std::string& attack, const Stage& stage, Rng& rng) {
  if (attack == "dissensus") return dissensus(stage);
  if (attack == "alie") return alie(stage);
  Model sent = stage.mean_of(good_workers());
  for (float& value : sent) {
    if (attack == "noise") value += static_cast<float>(rng.normal());
    if (attack == "sign flip") value = -value;
    if (attack == "scale") value *= 100;
  }
  return sent;
}

struct Run {
  std::string topology, attack, robust;
  std::uint64_t seed;
};

Robust robust_by(const std::string& name) {
  if (name == "clip") return Robust::clip;
  return name == "trimmed_mean" ? Robust::trimmed_mean : Robust::none;
}

WorkerOptions options_of(const Run& run) {
  WorkerOptions options;
  options.algorithm = run.robust == "alone" ? algorithm::none() : algorithm::atc();
  options.robust = robust_by(run.robust);
  options.deadline = Seconds(30);
  return options;
}

/// What the good workers' own models end with.
struct Result {
  std::vector<double> accuracies = std::vector<double>(workers, 0.0);
  std::vector<double> kept_of_bad, kept_of_good;
  bool ended = true;

  double mean() const {
    double sum = 0;
    for (const int worker : good_workers()) sum += accuracies[static_cast<std::size_t>(worker)];
    return ended ? 100 * sum / (workers - 1) : std::nan("");
  }
  double worst() const {
    double worst = 1;
    for (const int worker : good_workers())
      worst = std::min(worst, accuracies[static_cast<std::size_t>(worker)]);
    return ended ? 100 * worst : std::nan("");
  }
};

double mean_of(const std::vector<double>& values) {
  return values.empty() ? std::nan("")
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

/// Every class has a center drawn from N(0, 1) in each coordinate; a sample is its class's center
/// and noise.
class Samples {
 public:
  Samples(std::size_t count, double noise, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<double> centers(std::size_t{classes} * features);
    for (double& value : centers) value = rng.normal();
    for (std::size_t k = 0; k < count; ++k) {
      labels_.push_back(static_cast<std::int32_t>(k % classes));
      for (std::size_t f = 0; f < features; ++f)
        inputs_.push_back(
            static_cast<float>(centers[k % classes * features + f] + noise * rng.normal()));
    }
  }
  Batch batch(std::size_t first, std::size_t count) const {
    return {.inputs = std::span(inputs_).subspan(first * features, count * features),
            .labels = std::span(labels_).subspan(first, count),
            .sample_shape = {features}};
  }

 private:
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
};

constexpr std::size_t test_samples = 5000;

/// One worker's part.
void train(const Group& group, const Options& o, const Run& run, const Samples& all, Stage& stage,
           Result& result) {
  const auto me = static_cast<std::size_t>(group.rank());
  const bool attacks = group.rank() == bad && run.attack != "none";
  const auto model =
      nn::make_backend<float>(nn::mlp({std::int64_t{features}, 64, classes}), run.seed,
                              {.optimizer = nn::SgdOptions{.momentum = 0.9}});
  const ParameterLayout layout(model->parameters());
  Worker worker(group, topology_by_name(run.topology), model->parameters(), options_of(run));
  Rng rng(run.seed + 99);
  const auto meet = [&] { group.barrier(Deadline(Seconds(30)), "bench_robust"); };
  Model weights(layout.size_bytes() / sizeof(float));
  for (int epoch = 0; epoch < o.epochs; ++epoch) {
    model->set_learning_rate(3 * epoch < 2 * o.epochs ? o.rate : o.rate / 10);
    for (std::size_t first = 0; first + batch_size <= o.samples; first += batch_size) {
      worker.step([&] {
        model->train(all.batch(me * o.samples + first, batch_size));
        layout.gather(reinterpret_cast<std::byte*>(weights.data()));
        stage.models[me] = weights;
        meet();
        if (attacks) {
          weights = sent_by(run.attack, stage, rng);
          layout.scatter(reinterpret_cast<const std::byte*>(weights.data()));
        }
        meet();
      });
    }
  }
  worker.await_finish();
  const Evaluation tested = model->evaluate(all.batch(workers * o.samples, test_samples));
  result.accuracies[me] = static_cast<double>(tested.correct) / test_samples;
  meet();
  if (me != static_cast<std::size_t>(stage.topology.out_neighbors(bad).front())) return;
  for (const NeighborShare& share : worker.stats().shares)
    (share.worker == bad ? result.kept_of_bad : result.kept_of_good).push_back(share.kept);
}

Result measured(const Options& o, const Run& run) {
  const Samples all(workers * o.samples + test_samples, o.noise, run.seed);
  Stage stage{.topology = topology_by_name(run.topology).make(workers).at(0)};
  Result result;
  try {
    local::run(workers, [&](const Group& group) { train(group, o, run, all, stage, result); });
  } catch (const Error&) {
    result.ended = false;
  }
  return result;
}

bench::Row row_of(const Options& o, Run run) {
  std::vector<double> means, worst, bad_kept, good_kept;
  for (int seed = 1; seed <= o.seeds; ++seed) {
    run.seed = static_cast<std::uint64_t>(seed);
    const Result result = measured(o, run);
    means.push_back(result.mean());
    worst.push_back(result.worst());
    bad_kept.push_back(mean_of(result.kept_of_bad));
    good_kept.push_back(mean_of(result.kept_of_good));
  }
  const auto text = [](const std::vector<double>& values) {
    return std::isnan(mean_of(values)) ? "-" : fmt::format("{:.2f}", mean_of(values));
  };
  return {{"topology", run.topology},
          {"attack", run.attack},
          {"robust", run.robust},
          {"mean of good, %", text(means)},
          {"worst of good, %", text(worst)},
          {"kept of bad", text(bad_kept)},
          {"kept of good", text(good_kept)}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Accuracy of seven workers beside a bad one; - : the run ended with an error"};
  Options options;
  bench::Report report("bench_robust");
  describe(app, options);
  report.add_options(app);
  CLI11_PARSE(app, argc, argv);
  report.add(row_of(options, {"ring", "none", "alone", 0}));
  for (const std::string& topology : options.topologies) {
    for (const std::string& attack : options.attacks) {
      for (const std::string& robust : options.methods) {
        report.add(row_of(options, {topology, attack, robust, 0}));
        report.save();
      }
    }
  }
  return report.finish();
}
