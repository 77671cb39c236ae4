#include <cmath>

#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
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
};

}  // namespace

const LayerEntry entries::layer_norm = entry_for<LayerNormKind>();

}  // namespace fast::nn
