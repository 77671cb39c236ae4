#include "nn/sequence.hpp"

#include <algorithm>

#include "nn/layers/layer_entry.hpp"
#include "nn/noise.hpp"

namespace fast::nn {

template <class T>
Sequence<T>::Sequence(const std::vector<LayerSpec>& layers, const Shape& input) {
  const std::vector<Shape> in = shapes_through(layers, input);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool relu = entry_of(layers[i]).takes_relu && i + 1 < layers.size() &&
                      std::holds_alternative<Relu>(layers[i + 1]);
    append(make_layer<T>(layers[i], in[i], relu), in[i + 1], i);
    if (relu) ++i;
  }
}

template <class T>
void Sequence<T>::append(std::unique_ptr<Layer<T>> layer, Shape output, std::size_t number) {
  if (parameter_count_ == 0) first_trained_ = stages_.size();
  stages_.push_back({std::move(layer), parameter_count_, buffer_count_, std::move(output), number});
  parameter_count_ += stages_.back().layer->parameter_count();
  buffer_count_ += stages_.back().layer->buffer_count();
}

template <class T>
void Sequence<T>::reserve(Index count) {
  if (count <= capacity_) return;
  Index largest = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Index size = stored_elements<T>(stages_[i].output_shape, count);
    largest = std::max(largest, size);
    if (!in_place(i)) grow<T>(stages_[i].output, size);
  }
  for (AlignedBuffer& grads : grads_) grow<T>(grads, largest);
  capacity_ = count;
}

template <class T>
const T* Sequence<T>::forward(const T* parameters, const T* x, const Pass<T>& pass) {
  reserve(pass.count);
  values_.assign(1, x);
  T* y = nullptr;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    if (!in_place(i)) y = stage.output.template as<T>().data();
    stage.layer->forward(parameters + stage.parameters, values_.back(), y,
                         {pass.count, pass.training, pass.buffers + stage.buffers, pass.noise,
                          place_in_list(pass.place, stage.number)});
    values_.push_back(y);
  }
  return values_.back();
}

template <class T>
void Sequence<T>::backward(const T* parameters, T* gradients, const T* dy, T* dx, Index count) {
  const std::size_t first = dx == nullptr ? first_trained_ : 0;
  T* own = nullptr;  // gradients in grads_, after the last layer
  std::size_t turn = 0;
  for (std::size_t i = stages_.size(); i-- > first;) {
    const Stage& stage = stages_[i];
    T* target = own;
    if (i == first) {
      target = dx;
    } else if (own == nullptr || !stage.layer->in_place()) {
      target = grads_[turn].as<T>().data();
      turn = 1 - turn;
    }
    stage.layer->backward(parameters + stage.parameters, gradients + stage.parameters, values_[i],
                          values_[i + 1], own == nullptr ? dy : own, target, count);
    own = target;
  }
}

template class Sequence<float>;
template class Sequence<double>;

}  // namespace fast::nn
