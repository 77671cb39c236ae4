// A training step on devices with exchange against the same step without: ranks on one card or on
// several, every method with a replica of its own, a block of steps each in turn.
#include <fast/core/random.hpp>
#include <fast/cuda/device.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/cuda/backend.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/device_replica.hpp>
#include <fast/worker/worker.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>

#include "ranks.hpp"
#include "report.hpp"

using namespace fast;

namespace {

struct Options {
  std::string model = "resnet50", device = "cuda", precision = "bf16", topology = "ring";
  std::size_t batch = 128;
  int steps = 10;
  bool graph = false;
  std::vector<std::string> codecs{"identity", "bf16"};
};

void describe(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, "what is trained")
      ->check(CLI::IsMember({"lenet5", "resnet20", "resnet50"}))
      ->capture_default_str();
  app.add_option("--device", o.device, "cuda: the cards in turn; cpu: nn, for comparison")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  app.add_option("--precision", o.precision, "f32, tf32 or bf16, on cards")->capture_default_str();
  app.add_option("--topology", o.topology, "a name or a file")->capture_default_str();
  bench::add_block(app, o.batch, o.steps);
  app.add_option("--codec", o.codecs, "what messages look like, each a method")
      ->capture_default_str();
  app.add_flag("--cuda-graph", o.graph, "the step as one CUDA graph");
}

nn::ModelSpec model_of(const std::string& name) {
  if (name == "resnet50") return nn::resnet50();
  return name == "resnet20" ? nn::resnet20() : nn::lenet5();
}

/// What a method trains with: batches begin their way to the device, if it has one, as soon as they
/// are whole, as the Trainer's do.
struct Replica {
  std::unique_ptr<Backend> backend;
  std::shared_ptr<cuda::BatchStage> stage;  ///< null on the CPU
};

Replica replica_of(const Options& o, const Group& group) {
  nn::BackendOptions options;
  options.optimizer = nn::SgdOptions{.learning_rate = 0.001};
  if (o.device == "cpu") return {nn::make_backend<float>(model_of(o.model), 1, options), nullptr};
  cuda::device(0);
  const int count = static_cast<int>(cuda::inventory().devices.size());
  const int device = cuda::device_in_turn(group.rank(), group.hosts(), count);
  auto stage = std::make_shared<cuda::BatchStage>(device);
  return {cuda::make_backend(model_of(o.model), 1, options,
                             {.device = device,
                              .precision = cuda::precision_from(o.precision),
                              .graph = o.graph,
                              .stage = stage}),
          stage};
}

/// A replica with images of its own, and its Worker; none of those that exchange nothing.
class Method {
 public:
  Method(const Group& group, const Options& o, const std::string& codec)
      : group_(group),
        codec_(codec),
        replica_(replica_of(o, group)),
        shape_(model_of(o.model).input) {
    Rng rng(mix_seed(7, static_cast<std::uint64_t>(group.rank())));
    const auto size =
        std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
    size_ = o.batch * static_cast<std::size_t>(size);
    labels_.resize(o.batch);
    for (auto& label : labels_) label = static_cast<std::int32_t>(rng.below(10));
    for (std::shared_ptr<float>& inputs : inputs_) {
      inputs = replica_.stage
                   ? replica_.stage->allocate(size_)
                   : std::shared_ptr<float>(new float[size_], std::default_delete<float[]>());
      for (float& value : std::span(inputs.get(), size_)) value = static_cast<float>(rng.normal());
      send(inputs);
    }
    // Both sides keep weights on the device: with a mirror each step would copy them twice.
    auto* const replica = dynamic_cast<DeviceReplica*>(replica_.backend.get());
    WorkerOptions options;
    if (replica != nullptr) options.accelerator = replica->accelerate();
    if (codec.empty()) return;
    options.codec = codec::by_name(codec);
    auto parameters =
        replica == nullptr ? replica_.backend->parameters() : replica->device_parameters();
    worker_.emplace(group, topology_from(o.topology), std::move(parameters), options);
  }

  const std::string& codec() const { return codec_; }
  const std::vector<double>& times_ms() const { return times_ms_; }

  void run_block(int steps, bool counts) {
    step();
    bench::start_together(group_);
    const auto begin = Clock::now();
    for (int s = 0; s < steps; ++s) step();
    const auto all = bench::gather(group_, {1e3 * Seconds(Clock::now() - begin).count() / steps});
    double sum = 0;
    for (const auto& one : all) sum += one[0];
    if (counts) times_ms_.push_back(sum / static_cast<double>(all.size()));
  }

  /// Replicas that have averaged are nearer to each other than their steps alone would leave them.
  double finish() {
    if (!worker_) return 0;
    worker_->await_finish();
    const double distance = worker_->consensus_distance();
    require(std::isfinite(distance), ErrorKind::internal,
            "bench_cuda_step: the consensus distance is {}", distance);
    return distance;
  }

 private:
  Batch batch_in(const std::shared_ptr<float>& inputs) const {
    return {{inputs.get(), size_}, labels_, shape_};
  }

  /// A batch begins its way to the device, if there is one.
  void send(const std::shared_ptr<float>& inputs) {
    if (!replica_.stage) return;
    replica_.stage->refill(inputs.get());
    replica_.stage->filled(batch_in(inputs));
  }

  /// On one of two batches, while the other travels, as a prefetched one does.
  void step() {
    const std::shared_ptr<float>& now = inputs_[steps_ % 2];
    if (steps_++ > 0) send(inputs_[steps_ % 2]);
    const auto train = [&] { return replica_.backend->train(batch_in(now)); };
    const double loss = worker_ ? worker_->step(train) : train();
    require(std::isfinite(loss), ErrorKind::numeric, "bench_cuda_step: the loss is {}", loss);
  }

  Group group_;
  std::string codec_;
  Replica replica_;
  nn::Shape shape_;
  std::array<std::shared_ptr<float>, 2> inputs_;
  std::size_t size_ = 0, steps_ = 0;
  std::vector<std::int32_t> labels_;
  std::optional<Worker> worker_;
  std::vector<double> times_ms_;
};

int run(const Group& group, int argc, char** argv) {
  Options o;
  bench::Report report("bench_cuda_step");
  CLI::App app{
      "A training step on devices with exchange against the same without; start with "
      "mpiexec",
      "bench_cuda_step"};
  describe(app, o);
  report.add_options(app);
  if (!bench::parse(group, app, argc, argv)) return 0;
  std::vector<std::unique_ptr<Method>> methods;
  agree(group, Deadline(Seconds(300)), "bench_cuda_step: reading options", [&] {
    for (const std::string& name : o.codecs) codec::by_name(name);
    topology_from(o.topology);
    methods.push_back(std::make_unique<Method>(group, o, ""));
  });
  for (const std::string& codec : o.codecs) {
    methods.push_back(std::make_unique<Method>(group, o, codec));
  }
  for (int repeat = -1; repeat < report.repeats(); ++repeat) {
    for (const auto& method : methods) method->run_block(o.steps, repeat >= 0);
  }
  const double alone_ms = bench::timing_of(methods.front()->times_ms()).median_ms;
  for (const auto& method : methods) {
    const double distance = method->finish();
    const bench::Timing timing = bench::timing_of(method->times_ms());
    const bool exchanges = !method->codec().empty();
    report.add(exchanges ? "awc" : "none",
               {{"codec", exchanges ? method->codec() : "-"},
                {"model", o.model},
                {"device", o.device},
                {"precision", o.device == "cpu" ? "f32" : o.precision},
                {"workers", group.size()},
                {"batch", o.batch},
                {"of_none", timing.median_ms / alone_ms},
                {"consensus", distance}},
               timing);
  }
  return group.rank() == 0 ? report.finish() : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv,
                  [&](const mpi::Communicator& world) { return run(Group(world), argc, argv); });
}
