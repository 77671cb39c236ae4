#include "nn/cuda/convolution.hpp"

#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <iterator>
#include <tuple>
#include <vector>

#include "cuda/device/runtime.hpp"

// The attributes for handles are deprecated in favor of device properties. cuDNN has these since
// 9.8 only, and this library supports 9.0.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fast::cuda {
namespace {

std::string describe(const ConvolutionShape& s) {
  return fmt::format("{} images of {}x{}x{}, {} filters of {}x{}, stride {}, padding {}", s.samples,
                     s.channels, s.height, s.width, s.filters, s.kernel_rows(), s.kernel, s.stride,
                     s.padding);
}

/// The layout is channels last. Dimensions are always given as [n, c, h, w].
Descriptor tensor(cudnnDataType_t type, std::int64_t id, std::int64_t n, std::int64_t c,
                  std::int64_t h, std::int64_t w) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::int64_t alignment = 16;
  const std::array dimensions{n, c, h, w}, strides{h * w * c, std::int64_t{1}, w * c, c};
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dimensions.data(), 4);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &id);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &alignment);
  made.finalize("a tensor");
  return made;
}

Descriptor geometry(const ConvolutionShape& s) {
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::int64_t dimensions = 2;
  const std::array dilations{std::int64_t{1}, std::int64_t{1}}, strides{s.stride, s.stride},
      paddings{s.padding_rows(), s.padding};
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, &dimensions);
  made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilations.data(), 2);
  made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, strides.data(), 2);
  made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, paddings.data(), 2);
  made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, paddings.data(), 2);
  made.finalize("a convolution's geometry");
  return made;
}

/// The names of the graph interface for each kind. a, b and out are those of Convolution.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t geometry, a, b, out, alpha, beta;
};
constexpr std::array<Names, 3> names{
    {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
     {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
     {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}}};

Descriptor graph_of(const Descriptor& operation, cudnnHandle_t handle) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize("a graph of a convolution");
  return graph;
}

/// The proposals of the heuristics, best first. Empty if they fail.
std::vector<Descriptor> configurations(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
  std::int64_t count = 0;
  if (cudnnBackendFinalize(heuristics.get()) != CUDNN_STATUS_SUCCESS ||
      cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                               nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(found.back().get());
  }
  check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
        "reading what heuristics propose");
  found.erase(found.begin() + count, found.end());
  return found;
}

Descriptor engine_of(const Descriptor& configuration) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
        "reading a configuration's engine");
  return engine;
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& configuration) {
  const Descriptor engine = engine_of(configuration);
  std::int64_t count = 0;
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, static_cast<std::int64_t>(notes.size()),
                                 &count, notes.data()),
        "reading an engine's notes");
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

/// Reads one value. False if cuDNN does not give it.
template <class T>
bool get(const Descriptor& from, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         T& value) {
  std::int64_t count = 0;
  return cudnnBackendGetAttribute(from.get(), name, type, 1, &count, &value) ==
         CUDNN_STATUS_SUCCESS;
}

/// The engine and its knobs, such as "engine 3, 2=7, 14=4". Empty if cuDNN does not give them.
std::string name_of(const Descriptor& configuration) {
  std::int64_t number = 0, count = 0;
  if (!get(engine_of(configuration), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, number))
    return {};
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    raw.push_back(knobs.back().get());
  }
  if (cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, &count,
                               raw.data()) != CUDNN_STATUS_SUCCESS ||
      count > CUDNN_KNOB_TYPE_COUNTS)
    return {};
  std::string name = fmt::format("engine {}", number);
  for (const Descriptor& knob : std::span(knobs).first(static_cast<std::size_t>(count))) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    if (!get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type) ||
        !get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, number))
      return {};
    name += fmt::format(", {}={}", static_cast<int>(type), number);
  }
  return name;
}

}  // namespace

void check(cudnnStatus_t status, std::string_view operation) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  std::string reason(text.data());
  for (char& c : reason)
    if (c == '\n') c = ' ';
  fail(ErrorKind::resource,
       "cuda: cuDNN: {} failed with {} ({}): {}; see that cuDNN and the driver are meant for each "
       "other, or run on the CPU",
       operation, cudnnGetErrorString(status), static_cast<int>(status), reason);
}

cudnnDataType_t data_type(DType type) {
  return type == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

void Descriptor::Destroy::operator()(cudnnBackendDescriptor_t handle) const {
  cudnnBackendDestroyDescriptor(handle);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "making a descriptor");
  handle_.reset(made);
}

void Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::int64_t count, const void* values) {
  const cudnnStatus_t status = cudnnBackendSetAttribute(handle_.get(), name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS)
    check(status, fmt::format("setting attribute {}", static_cast<int>(name)));
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

void Descriptor::finalize(std::string_view what) {
  check(cudnnBackendFinalize(handle_.get()), what);
}

Descriptor convolution_operation(Convolution::Kind kind, const ConvolutionShape& s) {
  const cudnnDataType_t type = data_type(s.type);
  const auto images = [&](std::int64_t id) {
    return tensor(type, id, s.samples, s.channels, s.height, s.width);
  };
  const auto filters = [&](std::int64_t id) {
    return tensor(type, id, s.filters, s.channels, s.kernel_rows(), s.kernel);
  };
  const auto results = [&](std::int64_t id) {
    return tensor(type, id, s.samples, s.filters, s.out_height, s.out_width);
  };
  using Kind = Convolution::Kind;
  const Names& name = names[static_cast<std::size_t>(kind)];
  const float one = 1, zero = 0;
  Descriptor made(name.type);
  made.set(name.geometry, geometry(s));
  made.set(name.a, kind == Kind::input_grads ? results(1) : images(1));
  made.set(name.b, kind == Kind::filter_grads ? results(2) : filters(2));
  made.set(name.out, kind == Kind::forward       ? results(3)
                     : kind == Kind::input_grads ? images(3)
                                                 : filters(3));
  made.set(name.alpha, CUDNN_TYPE_FLOAT, &one);
  made.set(name.beta, CUDNN_TYPE_FLOAT, &zero);
  made.finalize(describe(s));
  return made;
}

void Convolutions::Destroy::operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }

bool Convolutions::Less::operator()(const std::pair<Convolution::Kind, ConvolutionShape>& a,
                                    const std::pair<Convolution::Kind, ConvolutionShape>& b) const {
  const auto key = [](const std::pair<Convolution::Kind, ConvolutionShape>& of) {
    const ConvolutionShape& s = of.second;
    return std::tuple(of.first, s.samples, s.channels, s.height, s.width, s.filters, s.kernel,
                      s.stride, s.padding, s.type, s.one_row);
  };
  return key(a) < key(b);
}

Convolutions::Convolutions(const PlanRules& rules, Tuner* tuner) : rules_(rules), tuner_(tuner) {
  cudnnHandle_t made = nullptr;
  check(cudnnCreate(&made), "cudnnCreate");
  handle_.reset(made);
}

bool suits(std::span<const cudnnBackendNumericalNote_t> notes, DType type, const PlanRules& rules) {
  for (const cudnnBackendNumericalNote_t note : notes) {
    // Tensor cores process f32 as TF32 only. Some engines use half precision.
    if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && type == DType::f32 && !rules.tf32) return false;
    if (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) return false;
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && rules.deterministic) return false;
  }
  return true;
}

std::string tuned_name(const Convolution& work, bool tf32) {
  constexpr std::array kinds{"forward", "input_grads", "filter_grads"};
  const ConvolutionShape& s = work.shape;
  return fmt::format("convolution {} {}{} {}x{}x{}x{} {}x{}x{} stride {} padding {}x{}",
                     kinds[static_cast<std::size_t>(work.kind)], name(s.type), tf32 ? " tf32" : "",
                     s.samples, s.channels, s.height, s.width, s.filters, s.kernel_rows(), s.kernel,
                     s.stride, s.padding_rows(), s.padding);
}

/// No value if the rules forbid it, or the device does not support it.
std::optional<Convolutions::Plan> Convolutions::plan_for(const Descriptor& configuration,
                                                         DType type) {
  if (!suits(notes_of(configuration), type, rules_)) return std::nullopt;
  cudnnHandle_t handle = handle_.get();
  Plan made{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), 0};
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &handle);
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (cudnnBackendFinalize(made.plan.get()) != CUDNN_STATUS_SUCCESS) return std::nullopt;
  std::int64_t count = 0, workspace_bytes = 0;
  check(cudnnBackendGetAttribute(made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &workspace_bytes),
        "reading a plan's workspace");
  made.workspace_bytes = static_cast<std::size_t>(workspace_bytes);
  return made;
}

Convolutions::Plan Convolutions::make_plan(const Convolution& work) {
  const Descriptor graph = graph_of(convolution_operation(work.kind, work.shape), handle_.get());
  std::vector<Descriptor> proposals = configurations(graph, CUDNN_HEUR_MODE_A);
  std::ranges::move(configurations(graph, CUDNN_HEUR_MODE_FALLBACK), std::back_inserter(proposals));
  const Ways<Plan> ways{proposals.size(), [&](std::size_t i) { return name_of(proposals[i]); },
                        [&](std::size_t i) { return plan_for(proposals[i], work.shape.type); },
                        [&](Plan& plan, std::optional<double> least) {
                          const auto run = [&](void* workspace, void* stream) {
                            execute(plan, work, workspace, stream);
                          };
                          return time_ms(plan.workspace_bytes, run, least);
                        }};
  std::optional<Plan> plan =
      tuner_ != nullptr ? tuner_->choose(tuned_name(work, rules_.tf32), ways) : first_of(ways);
  require(
      plan.has_value(), ErrorKind::resource,
      "cuda: cuDNN {} has no plan for {} ({}{}{}); choose another model or batch size, or run on "
      "the CPU",
      cudnnGetVersion(), describe(work.shape), name(work.shape.type), rules_.tf32 ? ", TF32" : "",
      rules_.deterministic ? ", deterministic" : "");
  return std::move(*plan);
}

Convolutions::Plan& Convolutions::plan_of(const Convolution& work) {
  const std::pair key(work.kind, work.shape);
  const auto found = plans_.find(key);
  return found != plans_.end() ? found->second : plans_.emplace(key, make_plan(work)).first->second;
}

std::size_t Convolutions::workspace_bytes(const Convolution& work) {
  return plan_of(work).workspace_bytes;
}

void Convolutions::run(const Convolution& work, void* workspace, void* stream) {
  execute(plan_of(work), work, workspace, stream);
}

void Convolutions::execute(const Plan& plan, const Convolution& work, void* workspace,
                           void* stream) {
  const std::array<std::int64_t, 3> ids{1, 2, 3};
  const std::array<const void*, 3> places{work.a, work.b, work.out};
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), 3);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, places.data(), 3);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
  pack.finalize("a convolution's places");
  check(cudnnSetStream(handle_.get(), static_cast<cudaStream_t>(stream)), "cudnnSetStream");
  check(cudnnBackendExecute(handle_.get(), plan.plan.get(), pack.get()), describe(work.shape));
}

}  // namespace fast::cuda
