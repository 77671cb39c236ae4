#include <algorithm>

#include "nn/layer.hpp"

namespace fast::nn {
namespace {

/// Parameters: weights of inputs, weights of hidden units, biases.
template <class T>
class LstmLayer final : public Layer<T> {
 public:
  LstmLayer(const Lstm& spec, const Shape& in)
      : steps_(in[0]), inputs_(in[1]), hidden_(spec.hidden), every_step_(spec.every_step) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    reserve(pass.count);
    const LstmSize size = size_of(pass.count);
    lstm_forward(size, weights(parameters), x, trace());
    const T* outputs = trace().outputs;
    if (every_step_) std::copy_n(outputs, size.rows() * hidden_, y);
    for (Index i = 0; !every_step_ && i < pass.count; ++i)
      std::copy_n(outputs + ((i + 1) * steps_ - 1) * hidden_, hidden_, y + i * hidden_);
  }

  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    lstm_backward(size_of(count), weights(parameters), x, trace(), dy, every_step_,
                  {gradients, gradients + 4 * hidden_ * inputs_, gradients + bias()}, dx,
                  data(grads_), data(carry_));
  }

  Index parameter_count() const override { return bias() + 4 * hidden_; }

 private:
  LstmSize size_of(Index count) const { return {count, steps_, inputs_, hidden_}; }
  Index bias() const { return 4 * hidden_ * (inputs_ + hidden_); }
  LstmWeights<T> weights(const T* parameters) const {
    return {parameters, parameters + 4 * hidden_ * inputs_, parameters + bias()};
  }
  static T* data(const AlignedBuffer& buffer) { return buffer.template as<T>().data(); }
  LstmTrace<T> trace() const { return {data(gates_), data(cells_), data(outputs_)}; }

  void reserve(Index count) {
    const LstmSize size = size_of(count);
    for (AlignedBuffer* buffer : {&gates_, &grads_}) grow<T>(*buffer, size.rows() * size.gates());
    for (AlignedBuffer* buffer : {&cells_, &outputs_}) grow<T>(*buffer, size.rows() * hidden_);
    grow<T>(carry_, 2 * count * hidden_);
  }

  Index steps_, inputs_, hidden_;
  bool every_step_;
  AlignedBuffer gates_, cells_, outputs_, grads_, carry_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_layer(const Lstm& spec, const Shape& input) {
  return std::make_unique<LstmLayer<T>>(spec, input);
}

template std::unique_ptr<Layer<float>> make_layer(const Lstm&, const Shape&);
template std::unique_ptr<Layer<double>> make_layer(const Lstm&, const Shape&);

}  // namespace fast::nn
