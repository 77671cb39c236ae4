#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/nn/network.hpp>
#include <functional>
#include <numeric>
#include <type_traits>

#include "nn/cpu.hpp"
#include "nn/layer.hpp"

namespace fast::nn {
namespace {

Index elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}

/// Vectors take any shape of as many values; [28x28] is an image of one channel.
bool fits(Shape sample, const Shape& input) {
  if (input.size() == 1) return elements_of(sample) == input[0];
  if (sample.size() == 2) sample.insert(sample.begin(), 1);
  return sample == input;
}

template <class T>
AlignedBuffer buffer_of(Index elements) {
  return AlignedBuffer(static_cast<std::size_t>(elements) * sizeof(T));
}

}  // namespace

template <class T>
Network<T>::Network(ModelSpec spec, std::uint64_t seed)
    : spec_(std::move(spec)), shapes_(shapes(spec_)), parameter_count_(nn::parameter_count(spec_)) {
  require_processor(processor_fits());
  require(parameter_count_ > 0, ErrorKind::argument,
          "Network: model {} has no parameters, at least one Dense or Conv2d is required",
          spec_.name);
  parameters_ = AlignedBuffer(parameter_count_ * sizeof(T));
  gradients_ = AlignedBuffer(parameter_count_ * sizeof(T));
  base_ = parameters_.as<T>().data();
  for (std::size_t i = 0; i < spec_.layers.size(); ++i)
    stages_.push_back({make_layer<T>(spec_.layers[i], shapes_[i]), 0, {}});
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
  first_trained_ = list.front().layer;
  for (std::size_t p = list.size(); p-- > 0;) {
    stages_[list[p].layer].offset = list[p].offset;  // the layer's first comes last
    if (list[p].fan_in == 0) continue;
    Rng rng(mix_seed(seed, p));
    const double gain = list[p].layer == list.back().layer ? 1.0 : 2.0;  // no ReLU after the last
    const double deviation = std::sqrt(gain / static_cast<double>(list[p].fan_in));
    for (T& weight : parameters().subspan(list[p].offset, list[p].count))
      weight = static_cast<T>(deviation * rng.normal());
  }
}

template <class T>
std::vector<TensorView> Network<T>::views(T* base) const {
  std::vector<TensorView> all;
  for (const ParameterSpec& p : nn::parameters(spec_))
    all.push_back({p.name, base + p.offset, p.shape, dtype_of<T>, Role::parameter, Device{}});
  return all;
}

template <class T>
std::vector<TensorView> Network<T>::parameter_views() {
  return views(base_);
}

template <class T>
std::vector<TensorView> Network<T>::gradient_views() {
  return views(gradients().data());
}

template <class T>
void Network<T>::set_parameter_base(T* base) {
  require(base != nullptr, ErrorKind::argument, "Network: null given as the place of {} parameters",
          parameter_count_);
  base_ = base;
}

template <class T>
void Network<T>::check(const Batch& batch) const {
  require(batch.count() > 0, ErrorKind::argument, "Network: the batch is empty");
  require(fits(batch.sample_shape, shapes_[0]), ErrorKind::argument,
          "Network: samples of shape {} given, model {} takes {}", describe(batch.sample_shape),
          spec_.name, describe(shapes_[0]));
  const std::size_t expected =
      batch.count() * static_cast<std::size_t>(elements_of(batch.sample_shape));
  require(batch.inputs.size() == expected, ErrorKind::argument,
          "Network: {} input values given, {} samples of shape {} have {}", batch.inputs.size(),
          batch.count(), describe(batch.sample_shape), expected);
  for (std::size_t i = 0; i < batch.count(); ++i)
    require(batch.labels[i] >= 0 && batch.labels[i] < classes(), ErrorKind::argument,
            "Network: sample {} of the batch has label {}, model {} has classes 0..{}", i,
            batch.labels[i], spec_.name, classes() - 1);
}

template <class T>
void Network<T>::reserve(std::int64_t count) {
  if (count <= capacity_) return;
  Index largest = 0;
  for (const Shape& shape : shapes_) largest = std::max(largest, stored_elements<T>(shape, count));
  input_ = buffer_of<T>(stored_elements<T>(shapes_[0], count));
  for (AlignedBuffer& slopes : slopes_) slopes = buffer_of<T>(largest);
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (!stages_[i].layer->in_place())
      stages_[i].output = buffer_of<T>(stored_elements<T>(shapes_[i + 1], count));
  capacity_ = count;
}

template <class T>
T* Network<T>::load(const Batch& batch) {
  if constexpr (std::is_same_v<T, float>)  // no stage writes to its input unless it is in place
    if (shapes_[0].size() == 1 && !stages_[0].layer->in_place())
      return const_cast<float*>(batch.inputs.data());
  T* input = input_.as<T>().data();
  if (shapes_[0].size() == 3)
    to_blocks(batch.inputs.data(), input, static_cast<Index>(batch.count()),
              elements_of(shapes_[0]));
  else
    std::copy(batch.inputs.begin(), batch.inputs.end(), input);
  return input;
}

template <class T>
std::span<const T> Network<T>::forward(const Batch& batch) {
  check(batch);
  const auto count = static_cast<Index>(batch.count());
  reserve(count);
  values_.assign(1, load(batch));
  for (Stage& stage : stages_) {
    T* x = values_.back();
    T* y = stage.layer->in_place() ? x : stage.output.template as<T>().data();
    stage.layer->forward(base_ + stage.offset, x, y, count);
    values_.push_back(y);
  }
  return {values_.back(), batch.count() * static_cast<std::size_t>(classes())};
}

template <class T>
void Network<T>::backward(std::int64_t count) {
  std::size_t turn = 0;
  for (std::size_t i = stages_.size(); i-- > first_trained_;) {
    const Stage& stage = stages_[i];
    T* dy = slopes_[turn].as<T>().data();
    if (!stage.layer->in_place()) turn = 1 - turn;
    T* dx = i == first_trained_ ? nullptr : slopes_[turn].as<T>().data();
    stage.layer->backward(base_ + stage.offset, gradients().data() + stage.offset, values_[i],
                          values_[i + 1], dy, dx, count);
  }
}

template <class T>
double Network<T>::loss_and_gradients(const Batch& batch) {
  const std::span<const T> logits = forward(batch);
  const LossResult loss =
      softmax_cross_entropy<T>(logits, batch.labels, slopes_[0].as<T>().first(logits.size()));
  backward(static_cast<Index>(batch.count()));
  return loss.sum / static_cast<double>(batch.count());
}

template <class T>
LossResult Network<T>::evaluate(const Batch& batch) {
  return softmax_cross_entropy<T>(forward(batch), batch.labels);
}

template class Network<float>;
template class Network<double>;

}  // namespace fast::nn
