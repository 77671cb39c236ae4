#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// The parameters are scales and biases. The buffers are running means and running variances.
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

struct BatchNormKind {
  using Spec = BatchNorm;
  static constexpr const char* prefix = "bn";
  static constexpr bool takes_relu = true;

  static void keys(BatchNorm& norm, Keys& keys) {
    keys.optional("momentum", norm.momentum);
    keys.optional("epsilon", norm.epsilon);
  }
  static std::string describe(const BatchNorm&) { return "batch norm"; }
  static Shape output(const BatchNorm& norm, const Shape& in) {
    demand_image(in);
    demand(norm.momentum > 0 && norm.momentum <= 1, "momentum {} is not in (0, 1]", norm.momentum);
    demand(norm.epsilon > 0, "epsilon {} is not positive", norm.epsilon);
    return in;
  }
  static void list_tensors(const BatchNorm&, const Shape& in, Inventory& to) {
    to.add_constant("weight", {in[0]}, 1);
    to.add_constant("bias", {in[0]}, 0);
    to.add_buffer("running_mean", {in[0]}, 0);
    to.add_buffer("running_var", {in[0]}, 1);
  }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const BatchNorm& norm, const Shape& in, bool relu) {
    return std::make_unique<BatchNormLayer<T>>(norm, in, relu);
  }
  static std::string to_onnx(const BatchNorm& norm, const std::string& in, OnnxGraph& graph) {
    return graph.node("BatchNormalization",
                      {in, graph.tensor("weight"), graph.tensor("bias"),
                       graph.tensor("running_mean"), graph.tensor("running_var")},
                      {onnx::attribute("epsilon", static_cast<float>(norm.epsilon))});
  }
};

}  // namespace

const LayerEntry entries::batch_norm = entry_for<BatchNormKind>();

}  // namespace fast::nn
