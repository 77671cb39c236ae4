#include <cmath>
#include <fast/core/memory.hpp>
#include <vector>

#include "nn/layer.hpp"

namespace fast::nn {
namespace {

/// Parameters: scales, biases. Buffers: running means, running variances.
template <class T>
class BatchNormLayer final : public Layer<T> {
 public:
  BatchNormLayer(const BatchNorm& spec, const Shape& in, bool relu)
      : spec_(spec), channels_(in[0]), area_(in[1] * in[2]), relu_(relu) {
    for (auto* values : {&mean_, &variance_, &reciprocal_, &scale_})
      values->resize(static_cast<std::size_t>(channels_));
  }

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const ImageSize size{channels_, area_, pass.count};
    if (pass.training) {
      batch_statistics(size, x, mean_.data(), variance_.data());
      update(pass);
    }
    const T* mean = pass.training ? mean_.data() : pass.buffers;
    const T* variance = pass.training ? variance_.data() : pass.buffers + channels_;
    for (Index c = 0; c < channels_; ++c) {
      const auto i = static_cast<std::size_t>(c);
      reciprocal_[i] = T{1} / std::sqrt(variance[c] + static_cast<T>(spec_.epsilon));
      scale_[i] = parameters[c] * reciprocal_[i];
    }
    batch_norm_forward(size, mean, scale_.data(), parameters + channels_, x, y, relu_);
  }

  void backward(const T* parameters, T* gradients, const T* x, const T* y, const T* dy, T* dx,
                Index count) override {
    batch_norm_backward({channels_, area_, count}, mean_.data(), reciprocal_.data(), parameters, x,
                        y, dy, gradients, gradients + channels_, dx, relu_);
  }

  Index parameter_count() const override { return 2 * channels_; }
  Index buffer_count() const override { return 2 * channels_; }

 private:
  void update(const Pass<T>& pass) {
    const auto values = static_cast<double>(pass.count * area_);
    const T unbiased = static_cast<T>(values / std::max(values - 1, 1.0));
    const T fresh = static_cast<T>(spec_.momentum), kept = T{1} - fresh;
    for (Index c = 0; c < channels_; ++c) {
      const auto i = static_cast<std::size_t>(c);
      T &mean = pass.buffers[c], &variance = pass.buffers[channels_ + c];
      mean = kept * mean + fresh * mean_[i];
      variance = kept * variance + fresh * unbiased * variance_[i];
    }
  }

  BatchNorm spec_;
  Index channels_, area_;
  bool relu_;
  std::vector<T> mean_, variance_, reciprocal_, scale_;
};

template <class T>
class GroupNormLayer final : public Layer<T> {
 public:
  GroupNormLayer(const GroupNorm& spec, const Shape& in)
      : spec_(spec), channels_(in[0]), area_(in[1] * in[2]) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const auto needed =
        static_cast<std::size_t>(block_count<T>(pass.count) * spec_.groups * lanes<T>) * sizeof(T);
    for (AlignedBuffer* buffer : {&mean_, &reciprocal_})
      if (buffer->size_bytes() < needed) *buffer = AlignedBuffer(needed);
    group_norm_forward({channels_, area_, pass.count}, spec_.groups, static_cast<T>(spec_.epsilon),
                       parameters, parameters + channels_, x, y, mean_.as<T>().data(),
                       reciprocal_.as<T>().data());
  }

  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    group_norm_backward({channels_, area_, count}, spec_.groups, parameters, x, dy,
                        static_cast<const T*>(mean_.as<T>().data()),
                        static_cast<const T*>(reciprocal_.as<T>().data()), gradients,
                        gradients + channels_, dx);
  }

  Index parameter_count() const override { return 2 * channels_; }

 private:
  GroupNorm spec_;
  Index channels_, area_;
  AlignedBuffer mean_, reciprocal_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_layer(const BatchNorm& spec, const Shape& input, bool relu) {
  return std::make_unique<BatchNormLayer<T>>(spec, input, relu);
}
template <class T>
std::unique_ptr<Layer<T>> make_layer(const GroupNorm& spec, const Shape& input) {
  return std::make_unique<GroupNormLayer<T>>(spec, input);
}

template std::unique_ptr<Layer<float>> make_layer(const BatchNorm&, const Shape&, bool);
template std::unique_ptr<Layer<double>> make_layer(const BatchNorm&, const Shape&, bool);
template std::unique_ptr<Layer<float>> make_layer(const GroupNorm&, const Shape&);
template std::unique_ptr<Layer<double>> make_layer(const GroupNorm&, const Shape&);

}  // namespace fast::nn
