#include "nn/cuda/recurrence.hpp"

#include <array>
#include <fast/core/error.hpp>
#include <limits>
#include <tuple>
#include <vector>

#include "cuda/device/runtime.hpp"
#include "nn/cuda/convolution.hpp"
#include "nn/cuda/layer_launch.hpp"

namespace fast::cuda {
namespace {

template <class H, class T>
void make(H& handle, cudnnStatus_t (*create)(T*)) {
  T made = nullptr;
  check(create(&made), "making a descriptor of a recurrent layer");
  handle.reset(made);
}

int narrow(Index size) {
  require(size <= std::numeric_limits<int>::max(), ErrorKind::argument,
          "cuda: a recurrent layer with a size of {}; cuDNN takes 2^31 - 1 at most", size);
  return static_cast<int>(size);
}

void describe_sequences(cudnnRNNDataDescriptor_t descriptor, const RecurrentShape& s,
                        Index features) {
  const std::vector<int> lengths(static_cast<std::size_t>(s.samples), narrow(s.steps));
  check(cudnnSetRNNDataDescriptor(descriptor, data_type(s.type),
                                  CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, narrow(s.steps),
                                  narrow(s.samples), narrow(features), lengths.data(), nullptr),
        "describing sequences");
}

/// The description of c, which a GRU has not.
cudnnTensorDescriptor_t cells(const RecurrentDescription& description, const RecurrentShape& s) {
  return s.cell == Cell::lstm ? description.state.get() : nullptr;
}

/// The distance of two addresses in elements.
Index elements_between(const void* first, const void* place, DType type) {
  const auto apart = static_cast<const std::byte*>(place) - static_cast<const std::byte*>(first);
  return apart / static_cast<Index>(size_bytes(type));
}

}  // namespace

void Recurrences::grow(DeviceBuffer& buffer, std::size_t size_bytes) {
  if (buffer.size_bytes() >= size_bytes) return;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  buffer = DeviceBuffer(size_bytes, device);
  ++version_;
}

RecurrentDescription::RecurrentDescription(const RecurrentShape& s, bool tf32,
                                           cudnnHandle_t handle) {
  constexpr std::size_t first_of_bf16 = 91300;
  require(s.type != DType::bf16 || cudnnGetVersion() >= first_of_bf16, ErrorKind::resource,
          "cuda: cuDNN {} has no recurrent layers of bf16, {} or later is required; install it, or "
          "take another precision",
          cudnnGetVersion(), first_of_bf16);
  make(dropout, &cudnnCreateDropoutDescriptor);
  make(layer, &cudnnCreateRNNDescriptor);
  make(x, &cudnnCreateRNNDataDescriptor);
  make(y, &cudnnCreateRNNDataDescriptor);
  make(state, &cudnnCreateTensorDescriptor);
  if (handle != nullptr)
    check(cudnnSetDropoutDescriptor(dropout.get(), handle, 0, nullptr, 0, 0),
          "describing a layer without dropout");
  const bool exact = s.type == DType::f32 && !tf32, lstm = s.cell == Cell::lstm;
  check(cudnnSetRNNDescriptor_v8(
            layer.get(), CUDNN_RNN_ALGO_STANDARD, lstm ? CUDNN_LSTM : CUDNN_GRU,
            lstm ? CUDNN_RNN_SINGLE_INP_BIAS : CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
            CUDNN_LINEAR_INPUT, data_type(s.type), CUDNN_DATA_FLOAT,
            exact ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH, narrow(s.inputs), narrow(s.hidden),
            narrow(s.hidden), 1, dropout.get(), CUDNN_RNN_PADDED_IO_ENABLED),
        "describing a recurrent layer");
  describe_sequences(x.get(), s, s.inputs);
  describe_sequences(y.get(), s, s.hidden);
  const std::array sides{1, narrow(s.samples), narrow(s.hidden)};
  const std::array strides{sides[1] * sides[2], sides[2], 1};
  check(cudnnSetTensorNdDescriptor(state.get(), data_type(s.type), 3, sides.data(), strides.data()),
        "describing the state of a recurrent layer");
}

bool Recurrences::Less::operator()(const RecurrentShape& a, const RecurrentShape& b) const {
  const auto key = [](const RecurrentShape& s) {
    return std::tuple(s.samples, s.steps, s.inputs, s.hidden, s.cell, s.type);
  };
  return key(a) < key(b);
}

void Recurrences::read_offsets(const RecurrentShape& shape, const void* space, Plan& plan) {
  decltype(RecurrentDescription::state) matrix, bias;
  make(matrix, &cudnnCreateTensorDescriptor);
  make(bias, &cudnnCreateTensorDescriptor);
  const RecurrentSizes sizes = shape.sizes();
  for (Index of_hidden = 0; of_hidden < 2; ++of_hidden)
    for (Index gate = 0; gate < sizes.gates; ++gate) {
      void *matrix_place = nullptr, *bias_place = nullptr;
      check(
          cudnnGetRNNWeightParams(handle_.get(), plan.description.layer.get(), 0, plan.space_bytes,
                                  space, static_cast<int>(of_hidden * sizes.gates + gate),
                                  matrix.get(), &matrix_place, bias.get(), &bias_place),
          "finding the weights of a recurrent layer");
      const bool has_bias = of_hidden < sizes.biases;
      require(matrix_place != nullptr && (!has_bias || bias_place != nullptr), ErrorKind::internal,
              "cuda: cuDNN {} shows no weights of gate {} of a recurrent layer", cudnnGetVersion(),
              gate);
      (of_hidden == 0 ? plan.offsets.inputs : plan.offsets.hidden)[gate] =
          elements_between(space, matrix_place, shape.type);
      if (has_bias)
        plan.offsets.bias[of_hidden][gate] = elements_between(space, bias_place, shape.type);
    }
}

Recurrences::Plan& Recurrences::plan_of(const RecurrentShape& shape) {
  const auto found = plans_.find(shape);
  if (found != plans_.end()) return found->second;
  if (!handle_) make(handle_, &cudnnCreate);
  Plan plan(shape, tf32_, handle_.get());
  const RecurrentDescription& d = plan.description;
  check(cudnnGetRNNWeightSpaceSize(handle_.get(), d.layer.get(), &plan.space_bytes),
        "asking for the size of a recurrent layer's weights");
  for (const bool training : {false, true})
    check(cudnnGetRNNTempSpaceSizes(handle_.get(), d.layer.get(),
                                    training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                                    d.x.get(), &plan.workspace_bytes[training ? 1 : 0],
                                    training ? &plan.reserve_bytes : nullptr),
          "asking for a recurrent layer's memory");
  return plans_.emplace(shape, std::move(plan)).first->second;
}

std::size_t Recurrences::prepare(const Recurrence& work) {
  Plan& plan = plan_of(work.shape);
  const bool training = work.kind != Recurrence::Kind::evaluation;
  Kept& kept = kept_[work.layer];
  grow(kept.weights, plan.space_bytes);
  if (training) {
    grow(kept.reserve, plan.reserve_bytes);
    grow(gradients_, plan.space_bytes);
  }
  read_offsets(work.shape, kept.weights.data(), plan);
  return plan.workspace_bytes[training ? 1 : 0];
}

void Recurrences::forward(const Recurrence& work, const Plan& plan, const Kept& kept,
                          void* workspace) {
  const RecurrentDescription& d = plan.description;
  const bool training = work.kind == Recurrence::Kind::training;
  // All sequences have full length, so cuDNN needs no lengths on the device. States start at 0.
  check(
      cudnnRNNForward(handle_.get(), d.layer.get(),
                      training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, nullptr,
                      d.x.get(), work.x, d.y.get(), work.y, d.state.get(), nullptr, nullptr,
                      cells(d, work.shape), nullptr, nullptr, plan.space_bytes, kept.weights.data(),
                      plan.workspace_bytes[training ? 1 : 0], workspace,
                      training ? plan.reserve_bytes : 0, training ? kept.reserve.data() : nullptr),
      "a recurrent layer");
}

void Recurrences::backward(const Recurrence& work, const Plan& plan, const Kept& kept,
                           void* workspace) {
  const RecurrentDescription& d = plan.description;
  check(cudnnRNNBackwardData_v8(handle_.get(), d.layer.get(), nullptr, d.y.get(), work.y, work.dy,
                                d.x.get(), work.dx, d.state.get(), nullptr, nullptr, nullptr,
                                cells(d, work.shape), nullptr, nullptr, nullptr, plan.space_bytes,
                                kept.weights.data(), plan.workspace_bytes[1], workspace,
                                plan.reserve_bytes, kept.reserve.data()),
        "gradients of a recurrent layer");
  check(cudnnRNNBackwardWeights_v8(handle_.get(), d.layer.get(), CUDNN_WGRAD_MODE_ADD, nullptr,
                                   d.x.get(), work.x, d.state.get(), nullptr, d.y.get(), work.y,
                                   plan.space_bytes, gradients_.data(), plan.workspace_bytes[1],
                                   workspace, plan.reserve_bytes, kept.reserve.data()),
        "gradients of a recurrent layer");
}

template <class V>
void Recurrences::run_on(const Recurrence& work, const Plan& plan, void* workspace, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const Kept& kept = kept_.at(work.layer);
  const RecurrentSizes sizes = work.shape.sizes();
  check(cudnnSetStream(handle_.get(), on), "cudnnSetStream");
  if (work.kind != Recurrence::Kind::grads) {
    const PackRecurrent<V> pack{work.weights, kept.weights.as<V>().data(), sizes, plan.offsets};
    check(launch_each(pack, on), "packing a recurrent layer's weights");
    forward(work, plan, kept, workspace);
    return;
  }
  check(cudaMemsetAsync(gradients_.data(), 0, plan.space_bytes, on), "cudaMemsetAsync");
  backward(work, plan, kept, workspace);
  const UnpackRecurrent<V> unpack{gradients_.as<V>().data(), work.gradients, sizes, plan.offsets};
  check(launch_each(unpack, on), "unpacking a recurrent layer's gradients");
}

void Recurrences::run(const Recurrence& work, void* workspace, void* stream) {
  const Plan& plan = plan_of(work.shape);
  if (work.shape.type == DType::bf16)
    run_on<BFloat16>(work, plan, workspace, stream);
  else
    run_on<float>(work, plan, workspace, stream);
}

}  // namespace fast::cuda
