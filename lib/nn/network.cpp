#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/nn/network.hpp>
#include <type_traits>

#include "nn/checks.hpp"
#include "nn/draws.hpp"
#include "nn/sequence.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

template <class T>
std::vector<TensorView> views(const std::vector<ParameterSpec>& list, T* base, Role role) {
  std::vector<TensorView> all;
  for (const ParameterSpec& p : list)
    all.push_back({p.name, base + p.offset, p.shape, dtype_of<T>, role, Device{}});
  return all;
}

}  // namespace

namespace {

/// One label a sample for a vector of logits, one a step for a sequence of them.
void require_labels(const Batch& batch, const ModelSpec& spec, const Shape& output) {
  require(batch.targets.empty(), ErrorKind::argument,
          "Network: the batch has float targets, the loss of model {} is {}, which takes class "
          "labels; choose the loss mse or huber",
          spec.name, name(spec.loss.kind));
  const Shape steps(output.begin(), output.end() - 1);
  require(
      batch.target_size() == static_cast<std::size_t>(elements_of(steps)), ErrorKind::argument,
      "Network: the batch has {} label{} a sample, the outputs of model {} are {}; cross_entropy "
      "takes one label for a vector of logits and one for each step of a sequence",
      batch.target_size(), batch.target_size() == 1 ? "" : "s", spec.name, describe(output));
  require(batch.mixed_labels.empty() || batch.mixed_labels.size() == batch.labels.size(),
          ErrorKind::argument, "Network: {} labels and {} of mixed samples; as many are required",
          batch.labels.size(), batch.mixed_labels.size());
  const std::int64_t classes = output.back();
  for (const std::span<const std::int32_t> labels : {batch.labels, batch.mixed_labels})
    for (std::size_t i = 0; i < labels.size(); ++i)
      require(labels[i] >= 0 && labels[i] < classes, ErrorKind::argument,
              "Network: sample {} of the batch has label {}, model {} has classes 0..{}",
              i / batch.target_size(), labels[i], spec.name, classes - 1);
}

/// As many targets as outputs. Binary cross-entropy also takes labels.
void require_targets(const Batch& batch, const ModelSpec& spec, const Shape& output) {
  const bool binary = spec.loss.kind == Loss::binary_cross_entropy;
  require(binary || !batch.targets.empty(), ErrorKind::argument,
          "Network: the batch has class labels, the loss of model {} is {}, which takes float "
          "targets; choose the loss cross_entropy",
          spec.name, name(spec.loss.kind));
  require(
      batch.target_size() == static_cast<std::size_t>(elements_of(output)), ErrorKind::argument,
      "Network: the batch has {} target{} a sample, the outputs of model {} are {}; as many are "
      "required",
      batch.target_size(), batch.target_size() == 1 ? "" : "s", spec.name, describe(output));
  if (!binary) return;
  const auto require_share = [&](const auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      require(values[i] >= 0 && values[i] <= 1, ErrorKind::argument,
              "Network: sample {} of the batch has the target {}, binary_cross_entropy takes "
              "numbers from 0 to 1",
              i / batch.target_size(), values[i]);
  };
  require_share(batch.labels);
  require_share(batch.targets);
}

}  // namespace

void require_fit(const Batch& batch, const ModelSpec& spec, const Shape& output) {
  const Shape& input = spec.input;
  const std::string& model = spec.name;
  require(batch.count() > 0, ErrorKind::argument, "Network: the batch is empty");
  require(takes(spec, batch.sample_shape), ErrorKind::argument,
          "Network: samples of shape {} given, model {} takes {}", describe(batch.sample_shape),
          model, describe(input));
  const std::size_t expected =
      batch.count() * static_cast<std::size_t>(elements_of(batch.sample_shape));
  require(batch.inputs.size() == expected, ErrorKind::argument,
          "Network: {} input values given, {} samples of shape {} have {}", batch.inputs.size(),
          batch.count(), describe(batch.sample_shape), expected);
  require_answers(batch, spec, output);
}

void require_answers(const Batch& batch, const ModelSpec& spec, const Shape& output) {
  if (spec.loss.kind == Loss::cross_entropy)
    require_labels(batch, spec, output);
  else
    require_targets(batch, spec, output);
}

template <class T>
Network<T>::Network(ModelSpec spec, T* parameters)
    : spec_(std::move(spec)), shapes_(shapes(spec_)), parameter_count_(nn::parameter_count(spec_)) {
  require_processor(processor_fits());
  require(parameter_count_ > 0, ErrorKind::argument,
          "Network: model {} has no parameters, at least one layer with weights is required",
          spec_.name);
  base_ = parameters;
  gradients_ = AlignedBuffer(parameter_count_ * sizeof(T));
  layers_ = std::make_unique<Sequence<T>>(spec_.layers, shapes_[0]);
  has_noise_ = has_dropout(spec_.layers);
  buffers_ = AlignedBuffer(static_cast<std::size_t>(layers_->buffer_count()) * sizeof(T));
  for (const ParameterSpec& b : nn::buffers(spec_))
    std::fill_n(buffers().begin() + static_cast<std::ptrdiff_t>(b.offset), b.count,
                static_cast<T>(b.initial));
}

template <class T>
Network<T>::Network(ModelSpec spec, std::uint64_t seed)
    : Network(std::move(spec), static_cast<T*>(nullptr)) {
  parameters_ = AlignedBuffer(parameter_count_ * sizeof(T));
  base_ = parameters_.as<T>().data();
  initialize(seed);
}

template <class T>
Network<T>::Network(Network&&) noexcept = default;
template <class T>
Network<T>& Network<T>::operator=(Network&&) noexcept = default;
template <class T>
Network<T>::~Network() = default;

template <class T>
void Network<T>::initialize(std::uint64_t seed) {
  const std::vector<ParameterSpec> list = nn::parameters(spec_);
  draw_initial(list, 0, list.size(), seed, base_);
}

template <class T>
std::vector<TensorView> Network<T>::parameter_views() {
  return views(nn::parameters(spec_), base_, Role::parameter);
}

template <class T>
std::vector<TensorView> Network<T>::buffer_views() {
  return views(nn::buffers(spec_), buffers().data(), Role::buffer);
}

template <class T>
std::vector<TensorView> Network<T>::gradient_views() {
  return views(nn::parameters(spec_), gradients().data(), Role::parameter);
}

template <class T>
void Network<T>::set_parameter_base(T* base) {
  require(base != nullptr, ErrorKind::argument, "Network: null given as the place of {} parameters",
          parameter_count_);
  base_ = base;
}

template <class T>
void Network<T>::check(const Batch& batch) const {
  require_fit(batch, spec_, shapes_.back());
}

template <class T>
const T* Network<T>::load(const Batch& batch) {
  const auto count = static_cast<Index>(batch.count());
  if constexpr (std::is_same_v<T, float>)
    if (shapes_[0].size() < 3) return batch.inputs.data();
  grow<T>(input_, stored_elements<T>(shapes_[0], count));
  T* input = input_.as<T>().data();
  if (shapes_[0].size() == 3)
    to_blocks(batch.inputs.data(), input, count, elements_of(shapes_[0]));
  else
    std::copy(batch.inputs.begin(), batch.inputs.end(), input);
  return input;
}

template <class T>
const std::uint64_t* Network<T>::noise_of(const Batch& batch) {
  draw_noise<T>(parameters(), batch.inputs, batch.count(), noise_);
  return noise_.data();
}

template <class T>
std::span<const T> Network<T>::forward(const Batch& batch, bool training) {
  check(batch);
  const Pass<T> pass{static_cast<Index>(batch.count()), training, buffers().data(),
                     training && has_noise_ ? noise_of(batch) : nullptr};
  return {layers_->forward(base_, load(batch), pass),
          batch.count() * static_cast<std::size_t>(elements_of(shapes_.back()))};
}

template <class T>
std::span<const T> Network<T>::forward(const Batch& batch) {
  return forward(batch, false);
}

template <class T>
double Network<T>::loss_and_gradients(const Batch& batch) {
  const std::span<const T> logits = forward(batch, true);
  grow<T>(grads_, static_cast<Index>(logits.size()));
  const std::span<T> grads = grads_.as<T>().first(logits.size());
  const LossResult loss = loss_of<T>(spec_.loss, logits, batch, grads);
  correct_ = loss.correct;
  layers_->backward(base_, gradients().data(), grads.data(), nullptr,
                    static_cast<Index>(batch.count()));
  return loss.sum / static_cast<double>(batch.count());
}

template <class T>
LossResult Network<T>::evaluate(const Batch& batch) {
  const std::span<const T> outputs = forward(batch, false);
  LossResult result = loss_of<T>({spec_.loss.kind, spec_.loss.delta}, outputs, batch);
  result.measures = measures_of<T>(spec_.loss, outputs, batch);
  return result;
}

template class Network<float>;
template class Network<double>;

}  // namespace fast::nn
