#include "nn/layer.hpp"

#include <algorithm>
#include <fast/core/memory.hpp>

namespace fast::nn {
namespace {

template <class T>
class DenseLayer final : public Layer<T> {
 public:
  DenseLayer(const Dense& spec, const Shape& input) : inputs_(input[0]), units_(spec.units) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    dense_forward(parameters, parameters + weights(), x, y, pass.count, inputs_, units_);
  }
  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    dense_weight_gradient(x, dy, gradients, gradients + weights(), count, inputs_, units_);
    if (dx != nullptr) dense_input_gradient(parameters, dy, dx, count, inputs_, units_);
  }

  Index parameter_count() const override { return weights() + units_; }

 private:
  Index weights() const { return inputs_ * units_; }
  Index inputs_, units_;
};

ConvSize conv_size(const Conv2d& conv, const Shape& in) {
  const Shape out = shapes_through({conv}, in)[1];
  return {in[0], in[1], in[2], out[0], out[1], out[2], conv.kernel, conv.stride, conv.padding};
}

template <class T>
class ConvLayer final : public Layer<T> {
 public:
  ConvLayer(const Conv2d& spec, const Shape& input)
      : size_(conv_size(spec, input)),
        bias_(spec.bias),
        packed_(static_cast<std::size_t>(size_.weights()) * sizeof(T)),
        rows_(static_cast<std::size_t>(conv_row_elements(size_, lanes<T>)) * sizeof(T)),
        sums_(static_cast<std::size_t>(conv_scratch_bytes(size_))) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    conv_forward(size_, parameters, bias_ ? parameters + size_.weights() : nullptr, x, y,
                 block_count<T>(pass.count), packed_.as<T>().data(), rows_.as<T>().data());
  }
  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    const Index blocks = block_count<T>(count);
    conv_weight_gradient(size_, x, dy, gradients, bias_ ? gradients + size_.weights() : nullptr,
                         blocks, sums_.as<T>().data());
    if (dx != nullptr)
      conv_input_gradient(size_, parameters, dy, dx, blocks, packed_.as<T>().data(),
                          rows_.as<T>().data());
  }

  Index parameter_count() const override { return size_.weights() + (bias_ ? size_.filters : 0); }

 private:
  ConvSize size_;
  bool bias_;
  AlignedBuffer packed_, rows_, sums_;
};

template <class T>
class ReluLayer final : public Layer<T> {
 public:
  explicit ReluLayer(const Shape& shape) : shape_(shape) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    relu_forward(x, y, stored_elements<T>(shape_, pass.count));
  }
  void backward(const T*, T*, const T*, const T* y, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) relu_backward(y, dy, dx, stored_elements<T>(shape_, count));
  }
  bool in_place() const override { return true; }

 private:
  Shape shape_;
};

template <class T>
class MaxPoolLayer final : public Layer<T> {
 public:
  MaxPoolLayer(const MaxPool& spec, const Shape& in)
      : MaxPoolLayer(spec, in, shapes_through({spec}, in)[1]) {}

  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    max_pool_forward(size_, x, y, planes(pass.count));
  }
  void backward(const T*, T*, const T* x, const T* y, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) max_pool_backward(size_, x, y, dy, dx, planes(count));
  }

 private:
  MaxPoolLayer(const MaxPool& spec, const Shape& in, const Shape& out)
      : channels_(in[0]), size_{in[1],     in[2],       out[1],      out[2],
                                spec.size, spec.stride, spec.padding} {}
  Index planes(Index count) const { return block_count<T>(count) * channels_; }
  Index channels_;
  PoolSize size_;
};

/// From blocks of images to vectors.
template <class T>
class FlattenLayer final : public Layer<T> {
 public:
  explicit FlattenLayer(const Shape& input)
      : elements_(stored_elements<T>({input.begin(), input.end()}, lanes<T>) / lanes<T>) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    from_blocks(x, y, pass.count, elements_);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) to_blocks(dy, dx, count, elements_);
  }

 private:
  Index elements_;
};

template <class T>
class AveragePoolLayer final : public Layer<T> {
 public:
  explicit AveragePoolLayer(const Shape& in) : channels_(in[0]), area_(in[1] * in[2]) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    average_pool_forward({channels_, area_, pass.count}, x, y);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) average_pool_backward({channels_, area_, count}, dy, dx);
  }

 private:
  Index channels_, area_;
};

template <class T>
class IdentityLayer final : public Layer<T> {
 public:
  explicit IdentityLayer(const Shape& shape) : shape_(shape) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    if (x != y) std::copy_n(x, stored_elements<T>(shape_, pass.count), y);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr && dx != dy) std::copy_n(dy, stored_elements<T>(shape_, count), dx);
  }
  bool in_place() const override { return true; }

 private:
  Shape shape_;
};

template <class T>
struct Maker {
  using Result = std::unique_ptr<Layer<T>>;
  const Shape& input;
  Result operator()(const Dense& spec) { return std::make_unique<DenseLayer<T>>(spec, input); }
  Result operator()(const Conv2d& spec) { return std::make_unique<ConvLayer<T>>(spec, input); }
  Result operator()(const Relu&) { return std::make_unique<ReluLayer<T>>(input); }
  Result operator()(const MaxPool& spec) { return std::make_unique<MaxPoolLayer<T>>(spec, input); }
  Result operator()(const Flatten&) {
    if (input.size() < 3) return make_identity<T>(input);
    return std::make_unique<FlattenLayer<T>>(input);
  }
  Result operator()(const GlobalAveragePool&) {
    return std::make_unique<AveragePoolLayer<T>>(input);
  }
  Result operator()(const BatchNorm& spec) { return make_layer<T>(spec, input); }
  Result operator()(const GroupNorm& spec) { return make_layer<T>(spec, input); }
  Result operator()(const Lstm& spec) { return make_layer<T>(spec, input); }
  Result operator()(const Residual& spec) { return make_layer<T>(spec, input); }
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_layer(const LayerSpec& spec, const Shape& input) {
  return std::visit(Maker<T>{input}, spec);
}

template <class T>
std::unique_ptr<Layer<T>> make_identity(const Shape& shape) {
  return std::make_unique<IdentityLayer<T>>(shape);
}

template std::unique_ptr<Layer<float>> make_identity(const Shape&);
template std::unique_ptr<Layer<double>> make_identity(const Shape&);
template std::unique_ptr<Layer<float>> make_layer(const LayerSpec&, const Shape&);
template std::unique_ptr<Layer<double>> make_layer(const LayerSpec&, const Shape&);

}  // namespace fast::nn
