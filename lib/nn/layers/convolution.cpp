#include "nn/layers/layer_entry.hpp"

#include <algorithm>

#include "nn/inventory.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

// What convolutions have in common.

/// The common part of their rows. A layer adds `prefix`, `describe`, `output`, `list_tensors` and
/// `make`.
template <class S>
struct ConvolutionKind {
  using Spec = S;

  static void keys(Spec& conv, Keys& keys) {
    keys.required("channels", conv.channels);
    keys.required("kernel", conv.kernel);
    keys.optional("stride", conv.stride);
    keys.optional("padding", conv.padding);
    keys.optional("bias", conv.bias);
  }
  static Window window(const Spec& conv) { return {conv.kernel, conv.stride, conv.padding}; }
  /// The inputs of ONNX's node.
  static std::vector<std::string> tensors(const Spec& conv, const std::string& in,
                                          OnnxGraph& graph) {
    std::vector<std::string> inputs{in, graph.tensor("weight")};
    if (conv.bias) inputs.push_back(graph.tensor("bias"));
    return inputs;
  }
};

namespace {

/// A product with the windows, each a row [feature][place in the kernel].
template <class T>
class Conv1dLayer final : public Layer<T> {
 public:
  Conv1dLayer(const Conv1d& spec, const Shape& in, Index out_steps)
      : spec_(spec), steps_(in[0]), features_(in[1]), out_steps_(out_steps) {
    grow<T>(no_bias_, spec.channels);
    std::fill_n(data(no_bias_), spec.channels, T{0});
  }

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    grow<T>(windows_, rows(pass.count) * window());
    for (Index s = 0; s < pass.count; ++s)
      each_value(s, [&](Index at, Index from) { data(windows_)[at] = from < 0 ? T{0} : x[from]; });
    const T* bias = spec_.bias ? parameters + weights() : data(no_bias_);
    dense_forward(parameters, bias, static_cast<const T*>(data(windows_)), y, rows(pass.count),
                  window(), spec_.channels);
  }

  void backward(const T* parameters, T* gradients, const T*, const T*, const T* dy, T* dx,
                Index count) override {
    grow<T>(ignored_, spec_.channels);
    dense_weight_gradient(static_cast<const T*>(data(windows_)), dy, gradients,
                          spec_.bias ? gradients + weights() : data(ignored_), rows(count),
                          window(), spec_.channels);
    if (dx == nullptr) return;
    grow<T>(grads_, rows(count) * window());
    dense_input_gradient(parameters, dy, data(grads_), rows(count), window(), spec_.channels);
    std::fill_n(dx, count * steps_ * features_, T{0});
    for (Index s = 0; s < count; ++s)
      each_value(s, [&](Index at, Index from) {
        if (from >= 0) dx[from] += data(grads_)[at];
      });
  }

  Index parameter_count() const override {
    return weights() + (spec_.bias ? Index{spec_.channels} : 0);
  }

 private:
  Index window() const { return features_ * spec_.kernel; }
  Index weights() const { return spec_.channels * window(); }
  Index rows(Index count) const { return count * out_steps_; }
  static T* data(const AlignedBuffer& buffer) { return buffer.template as<T>().data(); }

  /// visit(place in the windows, place in x or -1 in the padding) for sample s.
  template <class Visit>
  void each_value(Index s, const Visit& visit) const {
    for (Index t = 0; t < out_steps_; ++t)
      for (Index f = 0; f < features_; ++f)
        for (Index j = 0; j < spec_.kernel; ++j) {
          const Index step = t * spec_.stride + j - spec_.padding;
          const bool inside = step >= 0 && step < steps_;
          visit(((s * out_steps_ + t) * features_ + f) * spec_.kernel + j,
                inside ? (s * steps_ + step) * features_ + f : -1);
        }
  }

  Conv1d spec_;
  Index steps_, features_, out_steps_;
  AlignedBuffer windows_, grads_, no_bias_, ignored_;
};

struct Conv1dKind : ConvolutionKind<Conv1d> {
  static constexpr const char* prefix = "conv1d_";

  static std::string describe(const Conv1d& conv) {
    return fmt::format("conv1d {}, kernel {}, stride {}, padding {}{}", conv.channels, conv.kernel,
                       conv.stride, conv.padding, conv.bias ? "" : ", no bias");
  }
  static Shape output(const Conv1d& conv, const Shape& in) {
    demand_sequence(in);
    demand(conv.channels > 0, "channels must be positive");
    window(conv).demand_valid();
    demand(window(conv).fits(in[0]), "its kernel is longer than its input {}", nn::describe(in));
    return {window(conv).along(in[0]), conv.channels};
  }
  static void list_tensors(const Conv1d& conv, const Shape& in, Inventory& to) {
    to.add_weight("weight", {conv.channels, in[1], conv.kernel}, in[1] * conv.kernel);
    if (conv.bias) to.add_constant("bias", {conv.channels}, 0);
  }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const Conv1d& conv, const Shape& in) {
    return std::make_unique<Conv1dLayer<T>>(conv, in, window(conv).along(in[0]));
  }
  /// ONNX has [batch x features x steps].
  static std::string to_onnx(const Conv1d& conv, const std::string& in, OnnxGraph& graph) {
    const onnx::Message turn = onnx::attribute("perm", std::vector<std::int64_t>{0, 2, 1});
    const std::string y =
        graph.node("Conv", tensors(conv, graph.node("Transpose", {in}, {turn}), graph),
                   onnx::window(conv.kernel, conv.stride, conv.padding, 1));
    return graph.node("Transpose", {y}, {turn});
  }
};

}  // namespace

const LayerEntry entries::conv1d = entry_for<Conv1dKind>();

namespace {

template <class T>
class ConvLayer final : public Layer<T> {
 public:
  ConvLayer(const ConvSize& size, bool bias)
      : size_(size),
        bias_(bias),
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

struct Conv2dKind : ConvolutionKind<Conv2d> {
  static constexpr const char* prefix = "conv";

  static std::string describe(const Conv2d& conv) {
    return fmt::format("conv2d {}, kernel {}, stride {}, padding {}", conv.channels, conv.kernel,
                       conv.stride, conv.padding);
  }
  static Shape output(const Conv2d& conv, const Shape& in) {
    window(conv).demand_fit(in);
    demand(conv.channels > 0, "channels must be positive");
    return {conv.channels, window(conv).along(in[1]), window(conv).along(in[2])};
  }
  static void list_tensors(const Conv2d& conv, const Shape& in, Inventory& to) {
    to.add_weight("weight", {conv.channels, in[0], conv.kernel, conv.kernel},
                  in[0] * conv.kernel * conv.kernel);
    if (conv.bias) to.add_constant("bias", {conv.channels}, 0);
  }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const Conv2d& conv, const Shape& in) {
    const Shape out = output(conv, in);
    const ConvSize size{in[0],  in[1],       in[2],       out[0],      out[1],
                        out[2], conv.kernel, conv.stride, conv.padding};
    return std::make_unique<ConvLayer<T>>(size, conv.bias);
  }
  static std::string to_onnx(const Conv2d& conv, const std::string& in, OnnxGraph& graph) {
    return graph.node("Conv", tensors(conv, in, graph),
                      onnx::window(conv.kernel, conv.stride, conv.padding));
  }
};

}  // namespace

const LayerEntry entries::conv2d = entry_for<Conv2dKind>();

}  // namespace fast::nn
