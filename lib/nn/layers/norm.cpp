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

namespace {

template <class T>
class GroupNormLayer final : public Layer<T> {
 public:
  GroupNormLayer(const GroupNorm& spec, const Shape& in)
      : spec_(spec), channels_(in[0]), area_(in[1] * in[2]) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const Index kept = block_count<T>(pass.count) * spec_.groups * lanes<T>;
    for (AlignedBuffer* buffer : {&mean_, &reciprocal_}) grow<T>(*buffer, kept);
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

struct GroupNormKind : KindOf<GroupNorm, GroupNormLayer> {
  static constexpr const char* prefix = "gn";

  static void keys(GroupNorm& norm, Keys& keys) {
    keys.required("groups", norm.groups);
    keys.optional("epsilon", norm.epsilon);
  }
  static std::string describe(const GroupNorm& norm) {
    return fmt::format("group norm {}", norm.groups);
  }
  static Shape output(const GroupNorm& norm, const Shape& in) {
    demand_image(in);
    demand(norm.groups > 0 && in[0] % norm.groups == 0,
           "{} channels do not split into {} groups of equal size", in[0], norm.groups);
    demand(norm.epsilon > 0, "epsilon {} is not positive", norm.epsilon);
    return in;
  }
  static void list_tensors(const GroupNorm&, const Shape& in, Inventory& to) {
    to.add_constant("weight", {in[0]}, 1);
    to.add_constant("bias", {in[0]}, 0);
  }
  /// A group as one channel of an instance normalization, and then the weights of the channels.
  static std::string to_onnx(const GroupNorm& norm, const std::string& in, OnnxGraph& graph) {
    const auto groups = static_cast<std::size_t>(norm.groups);
    const Shape image = graph.input_shape();
    const std::string rows = graph.node("Reshape", {in, graph.integers({0, norm.groups, -1})});
    const std::string normal =
        graph.node("InstanceNormalization",
                   {rows, graph.constant(std::vector<double>(groups, 1), {norm.groups}),
                    graph.constant(std::vector<double>(groups, 0), {norm.groups})},
                   {onnx::attribute("epsilon", static_cast<float>(norm.epsilon))});
    const std::string turned =
        graph.node("Reshape", {normal, graph.integers({0, image[0], image[1], image[2]})});
    const auto each_channel = [&](const char* tensor) {
      return graph.node("Reshape", {graph.tensor(tensor), graph.integers({image[0], 1, 1})});
    };
    return graph.node("Add",
                      {graph.node("Mul", {turned, each_channel("weight")}), each_channel("bias")});
  }
};

}  // namespace

const LayerEntry entries::group_norm = entry_for<GroupNormKind>();

namespace {

/// Rows are the vectors, or the steps of the sequences.
template <class T>
class LayerNormLayer final : public Layer<T> {
 public:
  LayerNormLayer(const LayerNorm& spec, const Shape& in)
      : steps_(in.size() == 2 ? in[0] : 1), features_(in.back()), epsilon_(spec.epsilon) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const Index rows = steps_ * pass.count;
    for (AlignedBuffer* buffer : {&means_, &reciprocals_}) grow<T>(*buffer, rows);
    const T *weight = parameters, *bias = parameters + features_;
    for (Index r = 0; r < rows; ++r, x += features_, y += features_) {
      double sum = 0, squares = 0;
      for (Index i = 0; i < features_; ++i) sum += static_cast<double>(x[i]);
      const double mean = sum / static_cast<double>(features_);
      for (Index i = 0; i < features_; ++i) {
        const double apart = static_cast<double>(x[i]) - mean;
        squares += apart * apart;
      }
      const double variance = squares / static_cast<double>(features_);
      const T center = means()[r] = static_cast<T>(mean);
      const T scale = reciprocals()[r] = static_cast<T>(1 / std::sqrt(variance + epsilon_));
      for (Index i = 0; i < features_; ++i) y[i] = (x[i] - center) * scale * weight[i] + bias[i];
    }
  }

  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    std::fill_n(gradients, 2 * features_, T{0});
    T *dweight = gradients, *dbias = gradients + features_;
    for (Index r = 0; r < steps_ * count; ++r, x += features_, dy += features_) {
      const T mean = means()[r], scale = reciprocals()[r];
      double alone = 0, times = 0;  // means of the gradients of x̂, and of their products with x̂
      for (Index i = 0; i < features_; ++i) {
        const T normal = (x[i] - mean) * scale, grad = dy[i] * parameters[i];
        dweight[i] += dy[i] * normal;
        dbias[i] += dy[i];
        alone += static_cast<double>(grad);
        times += static_cast<double>(grad * normal);
      }
      if (dx == nullptr) continue;
      const T a = static_cast<T>(alone / static_cast<double>(features_)),
              b = static_cast<T>(times / static_cast<double>(features_));
      for (Index i = 0; i < features_; ++i)
        dx[i] = scale * (dy[i] * parameters[i] - a - (x[i] - mean) * scale * b);
      dx += features_;
    }
  }

  Index parameter_count() const override { return 2 * features_; }

 private:
  T* means() { return means_.as<T>().data(); }
  T* reciprocals() { return reciprocals_.as<T>().data(); }

  Index steps_, features_;
  double epsilon_;
  AlignedBuffer means_, reciprocals_;
};

struct LayerNormKind : KindOf<LayerNorm, LayerNormLayer> {
  static constexpr const char* prefix = "ln";

  static void keys(LayerNorm& norm, Keys& keys) { keys.optional("epsilon", norm.epsilon); }
  static std::string describe(const LayerNorm&) { return "layer norm"; }
  static Shape output(const LayerNorm& norm, const Shape& in) {
    demand(in.size() <= 2,
           "it takes vectors and sequences, its input is {}; group norm takes images",
           nn::describe(in));
    demand(norm.epsilon > 0, "epsilon {} is not positive", norm.epsilon);
    return in;
  }
  static void list_tensors(const LayerNorm&, const Shape& in, Inventory& to) {
    to.add_constant("weight", {in.back()}, 1);
    to.add_constant("bias", {in.back()}, 0);
  }
  static std::string to_onnx(const LayerNorm& norm, const std::string& in, OnnxGraph& graph) {
    return graph.node("LayerNormalization", {in, graph.tensor("weight"), graph.tensor("bias")},
                      {onnx::attribute("axis", std::int64_t{-1}),
                       onnx::attribute("epsilon", static_cast<float>(norm.epsilon))});
  }
};

}  // namespace

const LayerEntry entries::layer_norm = entry_for<LayerNormKind>();

}  // namespace fast::nn
