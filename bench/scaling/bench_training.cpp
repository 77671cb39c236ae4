// Trains a network of fast::nn by one of the methods of bench_scaling, so that the accuracy of a
// parameter server can be compared. The row has the test accuracy of the workers' mean weights, or
// their mean test loss if the loss is not cross_entropy. With --curve there is a row for each
// epoch, with its seconds. Rows leave the slow worker out. With --out, rank 0 saves the mean model.
// studies/thesis/run.sh, studies/storms/run.sh and bench/scaling/scaling.sh run it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fast/core/error.hpp>
#include <fast/data/load.hpp>
#include <fast/data/loader.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/network.hpp>
#include <fast/nn/optimizer.hpp>
#include <fast/train/model_metadata.hpp>
#include <fast/train/trainer.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ranks.hpp"
#include "report.hpp"
#include "scaling/contender.hpp"
#include "scaling/pace.hpp"
#include "train/checkpoint/run_directories.hpp"

using namespace fast;

namespace {

constexpr Seconds patience{300};
constexpr std::size_t test_batch = 200;

struct Options {
  bench::MethodOptions method;
  std::string data = "fashion-mnist", model = "lenet", staleness = "0";
  std::string loss, optimizer = "sgd", out;
  std::size_t samples = 0, batch_size = 64;
  int epochs = 5;
  bool curve = false;
  double learning_rate = 0.05, momentum = 0;
  std::optional<double> weight_decay;
  bench::PaceOptions pace{.step_ms = 0};
  std::uint64_t seed = 1;
};

void describe(CLI::App& app, Options& o) {
  app.add_option("--method", o.method.method,
                 "none, neighbors, allreduce, mpi_allreduce, server or server_async")
      ->capture_default_str();
  app.add_option("--topology", o.method.topology, "of neighbors")->capture_default_str();
  app.add_option("--rule", o.method.rule, "of neighbors")->capture_default_str();
  app.add_option("--staleness", o.staleness, "of neighbors: a number or inf")
      ->capture_default_str();
  app.add_option("--data", o.data, "as fast-train --data has it")->capture_default_str();
  app.add_option("--model", o.model, "a name or a file, as fast-train --model has it")
      ->capture_default_str();
  app.add_option("--loss", o.loss, "[cross_entropy for labels, mse for float targets]")
      ->check(CLI::IsMember({"cross_entropy", "mse", "huber", "binary_cross_entropy"}));
  app.add_option("--samples", o.samples, "train on the first so many; 0: all")
      ->capture_default_str();
  app.add_option("--batch-size", o.batch_size, "of each worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--epochs", o.epochs)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--lr", o.learning_rate, "cosine schedule, one epoch of warm-up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--optimizer", o.optimizer, "of each worker")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->capture_default_str();
  app.add_option("--momentum", o.momentum, "of sgd")
      ->check(CLI::Range(0.0, 0.999))
      ->capture_default_str();
  app.add_option("--weight-decay", o.weight_decay, "[0.01 for adamw, else 0]")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--step-ms", o.pace.step_ms, "shorter steps sleep")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--slow", o.pace.slow, "how many times as slow the last worker is")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--curve", o.curve, "a row for each epoch");
  app.add_option("--out", o.out, "directory that gets the last mean model");
  app.add_option("--seed", o.seed, "of weights and of the order of samples")->capture_default_str();
}

bool is_file(const Options& o) { return o.model.ends_with(".toml"); }

/// The outputs are logits of the classes, or one for each target.
nn::ModelSpec model_of(const Options& o, const data::Dataset& data) {
  const bool has_labels = data.targets().empty();
  const std::string loss = !o.loss.empty() ? o.loss : has_labels ? "cross_entropy" : "mse";
  const nn::Loss kind = nn::loss_by_name(loss).value();
  const auto outputs = kind == nn::Loss::cross_entropy
                           ? std::int64_t{data.classes()}
                           : static_cast<std::int64_t>(data.target_size());
  nn::ModelSpec spec = is_file(o) ? nn::read_model(o.model, {data.sample_shape(), outputs})
                                  : nn::model_by_name(o.model, outputs, data.sample_shape());
  spec.loss.kind = kind;
  return spec;
}

nn::OptimizerSpec optimizer_of(const Options& o) {
  nn::OptimizerSpec spec = nn::optimizer_spec(o.optimizer);
  if (auto* sgd = std::get_if<nn::SgdOptions>(&spec)) sgd->momentum = o.momentum;
  std::visit(
      [&](auto& options) {
        options.learning_rate = o.learning_rate;
        options.weight_decay = o.weight_decay.value_or(options.weight_decay);
      },
      spec);
  return spec;
}

/// One worker's replica and its part of the samples.
class Replica {
 public:
  Replica(const Options& o, const data::Splits& splits, int workers, int rank)
      : network_(model_of(o, splits.train), o.seed),
        optimizer_(optimizer_of(o), network_.parameter_count()),
        loader_(splits.train, splits.normalization, workers, rank, o.batch_size, o.seed),
        rate_{o.learning_rate, train::LearningRate::Schedule::cosine, 1},
        epochs_(o.epochs) {}

  std::span<float> weights() { return network_.parameters(); }
  std::string_view loss() const { return nn::name(network_.spec().loss.kind); }
  /// With the buffers, which are this worker's own.
  std::vector<TensorView> tensors() {
    std::vector<TensorView> views = network_.parameter_views();
    for (TensorView& buffer : network_.buffer_views()) views.push_back(std::move(buffer));
    return views;
  }
  std::size_t epoch_rounds() const { return loader_.rounds(); }
  std::size_t rounds() const { return epoch_rounds() * static_cast<std::size_t>(epochs_); }

  /// Its learning rate is that of the round's middle, as fast-train's.
  void step(std::size_t round) {
    const std::size_t an_epoch = loader_.rounds();
    const double epochs_done = (static_cast<double>(round) + 0.5) / static_cast<double>(an_epoch);
    optimizer_.set_learning_rate(rate_.at(epochs_done, epochs_));
    const double loss =
        network_.loss_and_gradients(loader_.batch(round / an_epoch, round % an_epoch));
    require(std::isfinite(loss), ErrorKind::numeric, "bench_training: the loss is {}", loss);
    optimizer_.step(network_.parameters(), network_.gradients());
  }

  /// The share of right answers for cross_entropy, else the mean loss.
  std::pair<const char*, double> tested(const data::Splits& splits) {
    data::Loader loader(splits.test, splits.normalization, test_batch);
    double correct = 0, loss = 0;
    for (const Batch& batch : loader.epoch(0)) {
      const nn::LossResult result = network_.evaluate(batch);
      correct += static_cast<double>(result.correct);
      loss += result.sum;
    }
    const auto samples = static_cast<double>(splits.test.size());
    if (network_.spec().loss.kind == nn::Loss::cross_entropy)
      return {"test_accuracy_mean_model", correct / samples};
    return {"test_loss_mean_model", loss / samples};
  }

 private:
  nn::Network<float> network_;
  nn::Optimizer<float> optimizer_;
  data::Loader loader_;
  train::LearningRate rate_;
  int epochs_;
};

data::Splits load(const Options& o) {
  data::LoadOptions how;
  if (o.loss == "cross_entropy") how.targets = data::TargetKind::classes;
  if (o.loss == "mse" || o.loss == "huber") how.targets = data::TargetKind::numbers;
  data::Splits splits = data::load(o.data, how);
  if (o.samples > 0) splits.train = splits.train.slice(0, std::min(o.samples, splits.train.size()));
  return splits;
}

/// One worker's weights after an epoch, and the seconds since the start.
struct Mark {
  double elapsed_s = 0;
  std::vector<float> weights;
};

/// The marks of all epochs, or of the last one.
std::vector<Mark> run(const Options& o, const mpi::Communicator& world, const Group& group,
                      Replica& replica) {
  const auto method = bench::make_contender(world, group, o.method, replica.weights());
  bench::Pace pace(o.pace, world.rank(), world.size());
  std::vector<Mark> marks;
  group.barrier(Deadline(patience), "training");
  const auto start = Clock::now();
  for (std::size_t round = 0; round < replica.rounds(); ++round) {
    method->round([&] {
      const Deadline begun(patience);
      replica.step(round);
      const double left_ms = 1e3 * (pace.next().count() - begun.elapsed_s());
      if (left_ms > 0) bench::sleep_ms(left_ms);
    });
    const bool is_last = round + 1 == replica.rounds();
    if (!is_last && !(o.curve && (round + 1) % replica.epoch_rounds() == 0)) continue;
    marks.push_back({Seconds(Clock::now() - start).count(), {}});
    if (!is_last) marks.back().weights.assign(replica.weights().begin(), replica.weights().end());
  }
  method->finish();
  group.barrier(Deadline(patience), "trained");
  marks.back().weights.assign(replica.weights().begin(), replica.weights().end());
  return marks;
}

/// How many of the first workers count: all but the slow one, where there is one.
int counted(const Options& o, const Group& group) {
  return o.pace.slow != 1 && group.size() > 1 ? group.size() - 1 : group.size();
}

/// The mean over the workers that count. Collective.
void average(Reducer& reducer, const Group& group, int count, std::vector<float>& weights) {
  const float share = static_cast<float>(group.size()) / static_cast<float>(count);
  for (float& weight : weights) weight *= group.rank() < count ? share : 0.0F;
  reducer.average(std::span(weights));
}

/// A row for each mark, on rank 0. Collective. Overwrites the replica's weights.
void add_rows(bench::Report& report, const Options& o, const Group& group,
              const data::Splits& splits, Replica& replica, std::vector<Mark>& marks) {
  const int count = counted(o, group);
  const auto reducer =
      group.size() > 1 ? group.open_reducer(replica.weights().size_bytes(), {}) : nullptr;
  std::size_t epoch = replica.rounds() / replica.epoch_rounds() - marks.size();
  for (Mark& mark : marks) {
    ++epoch;
    if (reducer) average(*reducer, group, count, mark.weights);
    const auto all = bench::gather(group, {mark.elapsed_s});
    if (group.rank() != 0) continue;
    const double elapsed_s = (*std::max_element(all.begin(), all.begin() + count))[0];
    std::copy(mark.weights.begin(), mark.weights.end(), replica.weights().begin());
    const auto samples = static_cast<double>(epoch * replica.epoch_rounds() * o.batch_size) * count;
    const auto [measure, value] = replica.tested(splits);
    report.add({{"method", o.method.method},
                {"workers", group.size()},
                {"epoch", epoch},
                {"samples", samples},
                {"seconds", elapsed_s},
                {"samples_per_second", samples / elapsed_s},
                {measure, value}});
  }
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The replica's weights, as fast-train saves the mean model.
void save(const Options& o, const data::Splits& splits, Replica& replica) {
  const data::Dataset& samples = splits.train;
  const train::ModelMetadata note{o.model,
                                  o.data,
                                  samples.sample_shape(),
                                  samples.classes(),
                                  splits.normalization,
                                  is_file(o) ? text_of(o.model) : "",
                                  std::string(replica.loss())};
  std::filesystem::create_directories(o.out);
  train::save_safetensors(std::filesystem::path(o.out) / train::mean_model_name, replica.tensors(),
                          train::to_metadata(note));
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    bench::Report report("bench_training");
    Options o;
    CLI::App app{"Trains a network by a method of bench_scaling", "bench_training"};
    describe(app, o);
    report.add_options(app);
    const Group group(world);
    if (!bench::parse(group, app, argc, argv)) return 0;
    o.method.staleness = bench::staleness_of(o.staleness);
    const data::Splits splits = load(o);
    Replica replica(o, splits, world.size(), world.rank());
    std::vector<Mark> marks = run(o, world, group, replica);
    add_rows(report, o, group, splits, replica, marks);
    if (world.rank() != 0) return 0;
    if (!o.out.empty()) save(o, splits, replica);
    return report.finish();
  });
}
