#include "nn/inventory.hpp"
#include "nn/layers/convolution.hpp"
#include "nn/onnx/graph.hpp"

namespace fast::nn {
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
    std::vector<std::string> inputs{in, graph.tensor("weight")};
    if (conv.bias) inputs.push_back(graph.tensor("bias"));
    return graph.node("Conv", inputs, onnx::window(conv.kernel, conv.stride, conv.padding));
  }
};

}  // namespace

const LayerEntry entries::conv2d = entry_for<Conv2dKind>();

}  // namespace fast::nn
