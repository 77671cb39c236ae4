#include <cmath>
#include <limits>

#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// The parameters are weights and biases of the first dense layer, then those of the second one.
template <class T>
class AttentionLayer final : public Layer<T> {
 public:
  AttentionLayer(const Attention& spec, const Shape& in)
      : steps_(in[0]), features_(in[1]), heads_(spec.heads), causal_(spec.causal) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const Index rows = pass.count * steps_;
    grow<T>(qkv_, rows * 3 * features_);
    grow<T>(weights_, pass.training ? rows * heads_ * steps_ : steps_ * steps_);
    grow<T>(sums_, rows * features_);
    dense_forward(parameters, parameters + in_bias(), x, data(qkv_), rows, features_,
                  3 * features_);
    attention_forward(size_of(pass.count), read(qkv_), data(weights_), data(sums_), pass.training);
    dense_forward(parameters + out_weights(), parameters + out_bias(), read(sums_), y, rows,
                  features_, features_);
  }

  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    const Index rows = count * steps_;
    grow<T>(dqkv_, rows * 3 * features_);
    grow<T>(dsums_, rows * features_);
    grow<T>(scratch_, steps_ * steps_);
    dense_weight_gradient(read(sums_), dy, gradients + out_weights(), gradients + out_bias(), rows,
                          features_, features_);
    dense_input_gradient(parameters + out_weights(), dy, data(dsums_), rows, features_, features_);
    attention_backward(size_of(count), read(qkv_), read(weights_), read(dsums_), data(dqkv_),
                       data(scratch_));
    dense_weight_gradient(x, read(dqkv_), gradients, gradients + in_bias(), rows, features_,
                          3 * features_);
    if (dx != nullptr)
      dense_input_gradient(parameters, read(dqkv_), dx, rows, features_, 3 * features_);
  }

  Index parameter_count() const override { return out_bias() + features_; }

 private:
  AttentionSize size_of(Index count) const {
    return {count, steps_, heads_, features_ / heads_, causal_};
  }
  Index in_bias() const { return 3 * features_ * features_; }
  Index out_weights() const { return in_bias() + 3 * features_; }
  Index out_bias() const { return out_weights() + features_ * features_; }
  static T* data(const AlignedBuffer& buffer) { return buffer.template as<T>().data(); }
  static const T* read(const AlignedBuffer& buffer) { return data(buffer); }

  Index steps_, features_, heads_;
  bool causal_;
  AlignedBuffer qkv_, weights_, sums_, dqkv_, dsums_, scratch_;
};

struct AttentionKind : KindOf<Attention, AttentionLayer> {
  static constexpr const char* prefix = "attention";

  static void keys(Attention& attention, Keys& keys) {
    keys.required("heads", attention.heads);
    keys.optional("causal", attention.causal);
  }
  static std::string describe(const Attention& attention) {
    return fmt::format("attention, heads {}{}", attention.heads,
                       attention.causal ? ", causal" : "");
  }
  static Shape output(const Attention& attention, const Shape& in) {
    demand_sequence(in);
    demand(attention.heads > 0, "heads must be positive");
    demand(in[1] % attention.heads == 0, "{} features do not split into {} heads of equal size",
           in[1], attention.heads);
    return in;
  }
  /// PyTorch's names and variances.
  static void list_tensors(const Attention&, const Shape& in, Inventory& to) {
    const std::int64_t features = in[1];
    to.add_weight("in_proj_weight", {3 * features, features}, 4 * features);
    to.add_constant("in_proj_bias", {3 * features}, 0);
    to.add_weight("out_proj.weight", {features, features}, 6 * features);
    to.add_constant("out_proj.bias", {features}, 0);
  }
  static std::string to_onnx(const Attention& attention, const std::string& in, OnnxGraph& graph) {
    const std::int64_t steps = graph.input_shape()[0], features = graph.input_shape()[1],
                       width = features / attention.heads;
    const auto turned = [&](const std::string& from, std::vector<std::int64_t> order) {
      return graph.node("Transpose", {from}, {onnx::attribute("perm", order)});
    };
    const auto dense = [&](const std::string& from, const char* weight, const char* bias) {
      const std::string product =
          graph.node("MatMul", {from, turned(graph.tensor(weight), {1, 0})});
      return graph.node("Add", {product, graph.tensor(bias)});
    };
    const std::string qkv =
        turned(graph.node("Reshape", {dense(in, "in_proj_weight", "in_proj_bias"),
                                      graph.integers({0, steps, 3, attention.heads, width})}),
               {2, 0, 3, 1, 4});
    const auto part = [&](std::int64_t which) {
      const std::string taken = graph.node("Gather", {qkv, graph.integers({which})});
      return graph.node("Squeeze", {taken, graph.integers({0})});
    };
    const std::string query =
        graph.node("Mul", {part(0), graph.constant({1 / std::sqrt(static_cast<double>(width))})});
    std::string scores = graph.node("MatMul", {query, turned(part(1), {0, 1, 3, 2})});
    if (attention.causal) scores = graph.node("Add", {scores, mask(steps, graph)});
    const std::string weights =
        graph.node("Softmax", {scores}, {onnx::attribute("axis", std::int64_t{-1})});
    const std::string sums = turned(graph.node("MatMul", {weights, part(2)}), {0, 2, 1, 3});
    return dense(graph.node("Reshape", {sums, graph.integers({0, steps, features})}),
                 "out_proj.weight", "out_proj.bias");
  }

 private:
  /// Hides the steps after each step.
  static std::string mask(std::int64_t steps, OnnxGraph& graph) {
    std::vector<double> hidden;
    for (std::int64_t step = 0; step < steps; ++step)
      for (std::int64_t other = 0; other < steps; ++other)
        hidden.push_back(other > step ? -std::numeric_limits<double>::infinity() : 0);
    return graph.constant(hidden, {steps, steps});
  }
};

}  // namespace

const LayerEntry entries::attention = entry_for<AttentionKind>();

}  // namespace fast::nn
