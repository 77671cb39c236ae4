#include <algorithm>
#include <array>

#include "nn/layers/recurrent.hpp"
#include "nn/onnx/graph.hpp"

namespace fast::nn {
namespace {

/// The parameters are the weights of the inputs, the weights of the hidden units, and the biases.
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

/// The rows of the gates i, f, g, o in ONNX's order i, o, f, g.
std::string onnx_gates(const TensorView& view) {
  const std::string_view rows(static_cast<const char*>(view.data), view.size_bytes());
  const std::size_t size = rows.size() / 4;
  std::string moved;
  for (const std::size_t gate : {0, 3, 1, 2}) moved += rows.substr(gate * size, size);
  return moved;
}

/// Stores a tensor with an axis of directions. ONNX has a second bias, which is 0 here.
std::string store_gates(const std::string& tensor, OnnxGraph& graph) {
  const TensorView& view = graph.view(tensor);
  std::string bytes = onnx_gates(view);
  Shape shape = view.shape;
  if (shape.size() == 1) {
    bytes.resize(2 * bytes.size());
    shape[0] *= 2;
  }
  shape.insert(shape.begin(), 1);
  return graph.store(tensor, shape, onnx::element_type(view.dtype), bytes);
}

std::string store_axis(char number, OnnxGraph& graph) {
  const std::array<char, 8> little_endian{number};
  return graph.store("axis", {1}, onnx::int64_type, {little_endian.data(), little_endian.size()});
}

/// From [batch x steps x features] to ONNX's [steps x batch x features] and back.
std::string turned(const std::string& sequences, OnnxGraph& graph) {
  return graph.node("Transpose", {sequences},
                    {onnx::attribute("perm", std::vector<std::int64_t>{1, 0, 2})});
}

struct LstmKind : RecurrentKind<Lstm, LstmLayer, 4> {
  static constexpr const char* prefix = "lstm";

  static std::string describe(const Lstm& lstm) { return described(prefix, lstm); }
  static void list_tensors(const Lstm& lstm, const Shape& in, Inventory& to) {
    list_weights(lstm, in, to);
    to.add_constant("bias", {gates(lstm)}, 0);
  }
  static std::string to_onnx(const Lstm& lstm, const std::string& in, OnnxGraph& graph) {
    std::vector<std::string> inputs{turned(in, graph)};
    for (const char* tensor : {"weight_ih", "weight_hh", "bias"})
      inputs.push_back(store_gates(tensor, graph));
    const std::vector<onnx::Message> attributes{onnx::attribute("hidden_size", lstm.hidden)};
    if (!lstm.every_step) {  // the second output is the last step
      const std::string last = graph.node("LSTM", inputs, attributes, "", 1);
      return graph.node("Squeeze", {last, store_axis(0, graph)});
    }
    const std::string all = graph.node("LSTM", inputs, attributes);
    return turned(graph.node("Squeeze", {all, store_axis(1, graph)}), graph);
  }
};

}  // namespace

const LayerEntry entries::lstm = entry_for<LstmKind>();

}  // namespace fast::nn
