#include <fast/nn/cuda/network.hpp>

#include <cudnn_graph.h>
#include <cudnn_version.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/cuda/stream.hpp>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/device/runtime.hpp"
#include "nn/checks.hpp"
#include "nn/cuda/convolution.hpp"
#include "nn/cuda/layer_launch.hpp"
#include "nn/cuda/matrix_product.hpp"
#include "nn/cuda/recurrence.hpp"
#include "nn/cuda/replay.hpp"
#include "nn/cuda/tuner.hpp"

namespace fast::cuda {

// Runs the works of a program on a device.

void destroy_graph(void* graph);
/// Captured works, ready to be launched.
using Graph = Handle<destroy_graph>;

/// Runs on one stream. Not thread-safe.
class Executor {
 public:
  Executor(const Stream& stream, const NetworkOptions& options);

  /// Chooses plans and algorithms and allocates the largest workspace, so that run() only enqueues.
  /// May overwrite the results of the works.
  void prepare(std::span<const Work> works);
  void run(std::span<const Work> works);

  /// Captures the work that enqueue() puts on the stream, such as run(), without running it. The
  /// same work must have run before.
  Graph capture(const std::function<void()>& enqueue);
  void launch(const Graph& graph);
  /// Changes when memory that graphs refer to has moved.
  std::uint64_t version() const { return version_ + recurrences_->version(); }

 private:
  std::size_t prepare(const Work& work);

  const Stream& stream_;
  std::optional<Tuner> tuner_;
  std::optional<Convolutions> convolutions_;
  std::optional<MatrixProducts> products_;
  std::optional<Recurrences> recurrences_;
  DeviceBuffer workspace_;
  std::uint64_t version_ = 0;
};

void destroy_graph(void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

/// What the times of works depend on.
std::string card_name(int index) {
  const DeviceInfo card = device(index);
  return fmt::format("{} ({}.{}), cuDNN {}, cuBLASLt {}", card.name, card.major, card.minor,
                     cudnnGetVersion(), cublasLtGetVersion());
}

Executor::Executor(const Stream& stream, const NetworkOptions& options) : stream_(stream) {
  const bool tf32 = options.precision == Precision::tf32;
  const UseDevice use(stream.device());  // a handle belongs to the current device
  if (options.autotune)
    tuner_.emplace(TuningFile(cache_folder(), card_name(options.device), options.log), options.log);
  Tuner* tuner = tuner_ ? &*tuner_ : nullptr;
  convolutions_.emplace(PlanRules{tf32, options.deterministic}, tuner);
  products_.emplace(tf32, tuner);
  recurrences_.emplace(tf32);
}

/// Returns the size of the workspace in bytes.
std::size_t Executor::prepare(const Work& work) {
  if (const auto* convolution = std::get_if<Convolution>(&work))
    return convolutions_->workspace_bytes(*convolution);
  if (const auto* product = std::get_if<MatrixProduct>(&work))
    return products_->workspace_bytes(*product);
  if (const auto* recurrence = std::get_if<Recurrence>(&work))
    return recurrences_->prepare(*recurrence);
  return 0;
}

void Executor::prepare(std::span<const Work> works) {
  const UseDevice use(stream_.device());
  std::size_t most = 0;
  if (tuner_) tuner_->begin();
  for (const Work& work : works) most = std::max(most, prepare(work));
  if (tuner_) tuner_->end();
  if (most <= workspace_.size_bytes()) return;
  workspace_ = DeviceBuffer(most, stream_.device());
  ++version_;
}

void Executor::run(std::span<const Work> works) {
  const UseDevice use(stream_.device());
  const auto stream = static_cast<cudaStream_t>(stream_.handle());
  for (const Work& work : works) {
    if (const auto* convolution = std::get_if<Convolution>(&work))
      convolutions_->run(*convolution, workspace_.data(), stream);
    else if (const auto* product = std::get_if<MatrixProduct>(&work))
      products_->run(*product, workspace_.data(), stream);
    else if (const auto* recurrence = std::get_if<Recurrence>(&work))
      recurrences_->run(*recurrence, workspace_.data(), stream);
    else
      check(cuda::launch(work, stream), "a layer's kernel");
  }
}

Graph Executor::capture(const std::function<void()>& enqueue) {
  const UseDevice use(stream_.device());
  const auto stream = static_cast<cudaStream_t>(stream_.handle());
  struct Destroy {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy> captured;
  const auto end = [&] {
    cudaGraph_t made = nullptr;
    const cudaError_t code = cudaStreamEndCapture(stream, &made);
    captured.reset(made);
    return code;
  };
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  try {
    enqueue();
  } catch (...) {
    end();
    cudaGetLastError();  // clear it: the first failure says more
    throw;
  }
  check(end(), "capturing a pass (leave graphs off where a library refuses it)");
  cudaGraphExec_t made = nullptr;
  check(cudaGraphInstantiate(&made, captured.get(), 0), "making a graph of a pass");
  return Graph(made);
}

void Executor::launch(const Graph& graph) {
  const UseDevice use(stream_.device());
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.get()),
                        static_cast<cudaStream_t>(stream_.handle())),
        "launching a pass");
}

namespace {

constexpr Seconds longest_wait{300};
constexpr std::size_t programs_kept = 4;  // training, evaluation, and the short batches of each

std::size_t buffer_count(const nn::ModelSpec& spec) {
  const std::vector<nn::ParameterSpec> list = nn::buffers(spec);
  return list.empty() ? 0 : list.back().offset + list.back().count;
}

nn::ModelSpec checked(nn::ModelSpec spec, const NetworkOptions& options) {
  require(!options.deterministic || !options.autotune, ErrorKind::argument,
          "cuda::Network: deterministic and autotune; plans chosen by the clock differ from run to "
          "run, so leave one of the two out");
  require(nn::parameter_count(spec) > 0, ErrorKind::argument,
          "cuda::Network: model {} has no parameters, at least one layer with weights is required",
          spec.name);
  cudnn_version();
  return spec;
}

}  // namespace

int cudnn_version() {
  const auto found = static_cast<int>(cudnnGetVersion());
  require(found >= CUDNN_VERSION, ErrorKind::resource,
          "cuda: cuDNN {} was loaded, {} or later is required; install it, or take older ones out "
          "of LD_LIBRARY_PATH",
          found, CUDNN_VERSION);
  return found;
}

Precision precision_from(std::string_view name) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16})
    if (name == cuda::name(precision)) return precision;
  fail(ErrorKind::argument, "cuda: precision \"{}\" is unknown; choose f32, tf32 or bf16", name);
}

std::string_view name(Precision precision) noexcept {
  if (precision == Precision::bf16) return "bf16";
  return precision == Precision::tf32 ? "tf32" : "f32";
}

struct Network::Impl {
  struct Ready {
    bool training;
    std::vector<DeviceBuffer> memory;
    PinnedBuffer losses, hits;
    Program program;
    float share = 0;  ///< what the program has; 0: none yet
    Replay<Graph, std::pair<std::uint64_t, std::uint64_t>> replay = {};
  };

  Impl(nn::ModelSpec model, const NetworkOptions& with)
      : spec(checked(std::move(model), with)),
        shapes(nn::shapes(spec)),
        stream(with.device),
        options(with),
        executor(stream, options),
        parameters(nn::parameter_count(spec) * sizeof(float), options.device),
        gradients(parameters.size_bytes(), options.device),
        buffers(buffer_count(spec) * sizeof(float), options.device),
        class_weights(spec.loss.class_weights.size() * sizeof(float), options.device) {
    std::vector<float> initial;
    for (const nn::ParameterSpec& b : nn::buffers(spec))
      initial.resize(b.offset + b.count, static_cast<float>(b.initial));
    copy(buffers.data(), initial.data(), buffers.size_bytes(), stream);
    const std::vector<float> weights(spec.loss.class_weights.begin(),
                                     spec.loss.class_weights.end());
    copy(class_weights.data(), weights.data(), class_weights.size_bytes(), stream);
    stream.synchronize(Deadline(longest_wait));
  }

  Ready make(Index samples, bool training) {
    const auto count = static_cast<std::size_t>(losses_of(spec, samples));
    Ready made{training,
               {},
               PinnedBuffer(count * sizeof(float)),
               PinnedBuffer((labeled() ? count : 1) * sizeof(std::int32_t)),
               {}};
    made.program =
        build_program(spec, samples, training, options.precision,
                      {parameters.as<float>().data(), gradients.as<float>().data(),
                       buffers.as<float>().data(), class_weights.as<float>().data()},
                      [&](std::size_t size_bytes) {
                        return made.memory.emplace_back(size_bytes, stream.device()).data();
                      });
    executor.prepare(made.program.works);
    return made;
  }

  Ready& program_for(Index samples, bool training) {
    for (Ready& ready : programs)
      if (ready.program.samples == samples && ready.training == training) return ready;
    if (programs.size() == programs_kept) programs.erase(programs.begin());
    programs.push_back(make(samples, training));
    return programs.back();
  }

  /// Enqueues the pass and, if there is an optimizer, its step.
  void enqueue(Ready& ready, Optimizer<float>* optimizer) {
    const auto all = [&] {
      executor.run(ready.program.works);
      if (optimizer != nullptr)
        optimizer->apply(parameters.as<float>(), gradients.as<const float>(), stream);
    };
    if (optimizer != nullptr) optimizer->begin_step(stream);
    if (!options.graph) return all();
    const std::uint64_t step = optimizer == nullptr ? 0 : optimizer->id();
    ready.replay.run(
        {executor.version(), step}, all, [&] { return executor.capture(all); },
        [&](const Graph& graph) { executor.launch(graph); });
  }

  void copy_mixed(Ready& ready, const Batch& batch) {
    const float share = batch.mixed_labels.empty() ? 1 : static_cast<float>(batch.share);
    if (std::exchange(ready.share, share) != share)
      copy(ready.program.share, &ready.share, sizeof share, stream);
    copy(ready.program.mixed, batch.mixed_labels.data(), batch.mixed_labels.size_bytes(), stream);
  }

  nn::LossResult run(const Batch& batch, bool training, Optimizer<float>* optimizer = nullptr) {
    nn::require_fit(batch, spec, shapes.back());
    const std::size_t count = batch.count();
    Ready& ready = program_for(static_cast<Index>(count), training);
    const Program& program = ready.program;
    const float* staged = options.stage ? options.stage->take(batch, stream) : nullptr;
    copy(program.inputs, staged != nullptr ? staged : batch.inputs.data(),
         batch.inputs.size_bytes(), stream);
    std::vector<float> labels_as_targets;  // lives until the copy is done
    if (labeled()) {
      copy(program.labels, batch.labels.data(), batch.labels.size_bytes(), stream);
      if (training) copy_mixed(ready, batch);
    } else {
      labels_as_targets.assign(batch.labels.begin(), batch.labels.end());
      const std::span<const float> targets =
          batch.targets.empty() ? std::span<const float>(labels_as_targets) : batch.targets;
      copy(program.targets, targets.data(), targets.size_bytes(), stream);
    }
    enqueue(ready, optimizer);
    std::vector<float> outputs;
    if (program.outputs != nullptr) {
      outputs.resize(count * static_cast<std::size_t>(elements_of(shapes.back())));
      copy(outputs.data(), program.outputs, outputs.size() * sizeof(float), stream);
    }
    copy(ready.losses.data(), program.losses, ready.losses.size_bytes(), stream);
    copy(ready.hits.data(), program.hits, ready.hits.size_bytes(), stream);
    stream.synchronize(Deadline(longest_wait));
    nn::LossResult result;
    for (const float loss : ready.losses.as<float>()) result.sum += static_cast<double>(loss);
    result.sum *= static_cast<double>(count) / static_cast<double>(program.losses_count);
    const std::span<std::int32_t> hits = ready.hits.as<std::int32_t>();
    if (labeled())
      result.correct = static_cast<std::size_t>(std::accumulate(hits.begin(), hits.end(), 0));
    if (!outputs.empty()) result.measures = nn::measures_of<float>(spec.loss, outputs, batch);
    if (training) correct = result.correct;
    return result;
  }

  bool labeled() const { return spec.loss.kind == nn::Loss::cross_entropy; }

  nn::ModelSpec spec;
  std::vector<nn::Shape> shapes;
  Stream stream;
  NetworkOptions options;
  Executor executor;
  DeviceBuffer parameters, gradients, buffers, class_weights;
  std::vector<Ready> programs;
  std::size_t correct = 0;  ///< in the last training pass
};

Network::Network(nn::ModelSpec spec, NetworkOptions options)
    : impl_(std::make_unique<Impl>(std::move(spec), options)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const nn::ModelSpec& Network::spec() const { return impl_->spec; }
const Stream& Network::stream() const { return impl_->stream; }
std::span<float> Network::parameters() { return impl_->parameters.as<float>(); }
std::span<float> Network::gradients() { return impl_->gradients.as<float>(); }
std::span<float> Network::buffers() { return impl_->buffers.as<float>(); }

std::size_t Network::correct() const { return impl_->correct; }

double Network::loss_and_gradients(const Batch& batch) {
  return impl_->run(batch, true).sum / static_cast<double>(batch.count());
}

double Network::train(const Batch& batch, Optimizer<float>& optimizer) {
  return impl_->run(batch, true, &optimizer).sum / static_cast<double>(batch.count());
}

nn::LossResult Network::evaluate(const Batch& batch) { return impl_->run(batch, false); }

void add_scaled(std::span<float> sum, std::span<const float> x, float factor, bool first,
                const Stream& stream) {
  require(sum.size() == x.size(), ErrorKind::argument,
          "cuda: {} values added to {}; as many are required", x.size(), sum.size());
  const UseDevice use(stream.device());
  const AddScaled work{sum.data(), x.data(), factor, first, static_cast<Index>(sum.size())};
  check(launch_each(work, static_cast<cudaStream_t>(stream.handle())), "adding gradients");
}

}  // namespace fast::cuda
