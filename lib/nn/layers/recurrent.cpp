#include "nn/inventory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

// What recurrent layers have in common.

/// The common part of their rows. A layer adds `prefix`, `describe` and `list_tensors`.
template <class Spec, template <class> class OnCpu, std::int64_t gates_of_unit>
struct RecurrentKind : KindOf<Spec, OnCpu> {
  static void keys(Spec& spec, Keys& keys) {
    keys.required("hidden", spec.hidden);
    keys.optional("every_step", spec.every_step);
  }
  static std::string described(const char* name, const Spec& spec) {
    return fmt::format("{} {}{}", name, spec.hidden, spec.every_step ? ", every step" : "");
  }
  static Shape output(const Spec& spec, const Shape& in) {
    demand_sequence(in);
    demand(spec.hidden > 0, "hidden units must be positive");
    if (spec.every_step) return {in[0], spec.hidden};
    return {spec.hidden};
  }
  /// The rows of its weights, and the length of its biases.
  static std::int64_t gates(const Spec& spec) { return gates_of_unit * spec.hidden; }
  static void list_weights(const Spec& spec, const Shape& in, Inventory& to) {
    const std::int64_t sums = in[1] + spec.hidden;
    to.add_weight("weight_ih", {gates(spec), in[1]}, sums);
    to.add_weight("weight_hh", {gates(spec), spec.hidden}, sums);
  }
};

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

/// The order of the gates i, f, g, o and r, z, n in ONNX.
constexpr std::array<std::size_t, 4> lstm_order{0, 3, 1, 2};
constexpr std::array<std::size_t, 3> gru_order{1, 0, 2};

std::string onnx_gates(const TensorView& view, std::span<const std::size_t> order) {
  const std::string_view rows(static_cast<const char*>(view.data), view.size_bytes());
  const std::size_t size = rows.size() / order.size();
  std::string moved;
  for (const std::size_t gate : order) moved += rows.substr(gate * size, size);
  return moved;
}

/// Stores weights with an axis of directions.
std::string store_gates(const std::string& tensor, std::span<const std::size_t> order,
                        OnnxGraph& graph) {
  const TensorView& view = graph.view(tensor);
  Shape shape = view.shape;
  shape.insert(shape.begin(), 1);
  return graph.store(tensor, shape, onnx::element_type(view.dtype), onnx_gates(view, order));
}

/// The same of the biases of the inputs and those of the hidden units, of which an LSTM has one.
std::string store_biases(const std::vector<const char*>& tensors,
                         std::span<const std::size_t> order, OnnxGraph& graph) {
  const TensorView& first = graph.view(tensors.front());
  std::string bytes;
  for (const char* tensor : tensors) bytes += onnx_gates(graph.view(tensor), order);
  bytes.resize(2 * first.size_bytes());
  return graph.store(tensors.front(), {1, 2 * first.shape[0]}, onnx::element_type(first.dtype),
                     bytes);
}

/// From [batch x steps x features] to ONNX's [steps x batch x features] and back.
std::string turned(const std::string& sequences, OnnxGraph& graph) {
  return graph.node("Transpose", {sequences},
                    {onnx::attribute("perm", std::vector<std::int64_t>{1, 0, 2})});
}

/// The node of a recurrent layer, whose first input are the sequences as they are here.
std::string recurrent_node(const char* kind, bool every_step, std::vector<std::string> inputs,
                           const std::vector<onnx::Message>& attributes, OnnxGraph& graph) {
  inputs.front() = turned(inputs.front(), graph);
  if (!every_step) {  // the second output is the last step
    const std::string last = graph.node(kind, inputs, attributes, "", 1);
    return graph.node("Squeeze", {last, graph.integers({0})});
  }
  const std::string all = graph.node(kind, inputs, attributes);
  return turned(graph.node("Squeeze", {all, graph.integers({1})}), graph);
}

struct LstmKind : RecurrentKind<Lstm, LstmLayer, 4> {
  static constexpr const char* prefix = "lstm";

  static std::string describe(const Lstm& lstm) { return described(prefix, lstm); }
  static void list_tensors(const Lstm& lstm, const Shape& in, Inventory& to) {
    list_weights(lstm, in, to);
    to.add_constant("bias", {gates(lstm)}, 0);
  }
  static std::string to_onnx(const Lstm& lstm, const std::string& in, OnnxGraph& graph) {
    return recurrent_node(
        "LSTM", lstm.every_step,
        {in, store_gates("weight_ih", lstm_order, graph),
         store_gates("weight_hh", lstm_order, graph), store_biases({"bias"}, lstm_order, graph)},
        {onnx::attribute("hidden_size", lstm.hidden)}, graph);
  }
};

}  // namespace

const LayerEntry entries::lstm = entry_for<LstmKind>();

namespace {

/// The parameters are the weights of the inputs, those of the hidden units, and their biases.
/// Sequences are [sample][step]; what the layer keeps of hidden units is [step][sample].
template <class T>
class GruLayer final : public Layer<T> {
 public:
  GruLayer(const Gru& spec, const Shape& in)
      : steps_(in[0]), inputs_(in[1]), hidden_(spec.hidden), every_step_(spec.every_step) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const Index count = pass.count, rows = count * steps_;
    for (AlignedBuffer* buffer : {&from_inputs_, &from_hidden_, &gates_})
      grow<T>(*buffer, rows * gates());
    grow<T>(outputs_, (steps_ + 1) * count * hidden_);
    dense_forward(parameters, parameters + bias(), x, data(from_inputs_), rows, inputs_, gates());
    std::fill_n(data(outputs_), count * hidden_, T{0});
    for (Index t = 0; t < steps_; ++t) {
      dense_forward(parameters + gates() * inputs_, parameters + bias() + gates(), output(t, count),
                    data(from_hidden_) + t * count * gates(), count, hidden_, gates());
      for (Index s = 0; s < count; ++s) advance(t, s, count);
      copy_step(t, count, y);
    }
  }

  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    const Index rows = count * steps_;
    for (AlignedBuffer* buffer : {&input_grads_, &hidden_grads_}) grow<T>(*buffer, rows * gates());
    for (AlignedBuffer* buffer : {&carry_, &through_}) grow<T>(*buffer, count * hidden_);
    std::fill_n(data(carry_), count * hidden_, T{0});
    for (Index t = steps_; t-- > 0;) {
      add_output_gradients(t, count, dy);
      for (Index s = 0; s < count; ++s) go_back(t, s, count);
      dense_input_gradient(parameters + gates() * inputs_,
                           data(hidden_grads_) + t * count * gates(), data(through_), count,
                           hidden_, gates());
      for (Index i = 0; i < count * hidden_; ++i) data(carry_)[i] += data(through_)[i];
    }
    dense_weight_gradient(x, static_cast<const T*>(data(input_grads_)), gradients,
                          gradients + bias(), rows, inputs_, gates());
    dense_weight_gradient(static_cast<const T*>(data(outputs_)),
                          static_cast<const T*>(data(hidden_grads_)), gradients + gates() * inputs_,
                          gradients + bias() + gates(), rows, hidden_, gates());
    if (dx != nullptr)
      dense_input_gradient(parameters, static_cast<const T*>(data(input_grads_)), dx, rows, inputs_,
                           gates());
  }

  Index parameter_count() const override { return bias() + 2 * gates(); }

 private:
  Index gates() const { return 3 * hidden_; }
  Index bias() const { return gates() * (inputs_ + hidden_); }
  static T* data(const AlignedBuffer& buffer) { return buffer.template as<T>().data(); }
  /// The hidden units before step t.
  T* output(Index t, Index count) const { return data(outputs_) + t * count * hidden_; }
  static T sigmoid(T z) { return T{1} / (T{1} + std::exp(-z)); }

  void advance(Index t, Index s, Index count) const {
    const T* a = data(from_inputs_) + (s * steps_ + t) * gates();
    const T* b = data(from_hidden_) + (t * count + s) * gates();
    T* kept = data(gates_) + (t * count + s) * gates();
    const T* before = output(t, count) + s * hidden_;
    T* after = output(t + 1, count) + s * hidden_;
    for (Index u = 0; u < hidden_; ++u) {
      const T reset = sigmoid(a[u] + b[u]);
      const T update = sigmoid(a[hidden_ + u] + b[hidden_ + u]);
      const T fresh = std::tanh(a[2 * hidden_ + u] + reset * b[2 * hidden_ + u]);
      kept[u] = reset;
      kept[hidden_ + u] = update;
      kept[2 * hidden_ + u] = fresh;
      after[u] = (T{1} - update) * fresh + update * before[u];
    }
  }

  void copy_step(Index t, Index count, T* y) const {
    if (!every_step_ && t + 1 < steps_) return;
    for (Index s = 0; s < count; ++s)
      std::copy_n(output(t + 1, count) + s * hidden_, hidden_,
                  y + (every_step_ ? s * steps_ + t : s) * hidden_);
  }
  void add_output_gradients(Index t, Index count, const T* dy) const {
    if (!every_step_ && t + 1 < steps_) return;
    for (Index s = 0; s < count; ++s)
      for (Index u = 0; u < hidden_; ++u)
        data(carry_)[s * hidden_ + u] += dy[(every_step_ ? s * steps_ + t : s) * hidden_ + u];
  }

  /// The gradients of the sums of step t. The carry becomes the direct part of that of the hidden
  /// units before it.
  void go_back(Index t, Index s, Index count) const {
    const T* kept = data(gates_) + (t * count + s) * gates();
    const T* b = data(from_hidden_) + (t * count + s) * gates();
    const T* before = output(t, count) + s * hidden_;
    T* carry = data(carry_) + s * hidden_;
    T* of_inputs = data(input_grads_) + (s * steps_ + t) * gates();
    T* of_hidden = data(hidden_grads_) + (t * count + s) * gates();
    for (Index u = 0; u < hidden_; ++u) {
      const T reset = kept[u], update = kept[hidden_ + u], fresh = kept[2 * hidden_ + u];
      const T dupdate = carry[u] * (before[u] - fresh) * update * (T{1} - update);
      const T dfresh = carry[u] * (T{1} - update) * (T{1} - fresh * fresh);
      const T dreset = dfresh * b[2 * hidden_ + u] * reset * (T{1} - reset);
      of_inputs[u] = of_hidden[u] = dreset;
      of_inputs[hidden_ + u] = of_hidden[hidden_ + u] = dupdate;
      of_inputs[2 * hidden_ + u] = dfresh;
      of_hidden[2 * hidden_ + u] = dfresh * reset;
      carry[u] *= update;
    }
  }

  Index steps_, inputs_, hidden_;
  bool every_step_;
  AlignedBuffer from_inputs_, from_hidden_, gates_, outputs_;  ///< of the last forward()
  AlignedBuffer input_grads_, hidden_grads_, carry_, through_;
};

struct GruKind : RecurrentKind<Gru, GruLayer, 3> {
  static constexpr const char* prefix = "gru";

  static std::string describe(const Gru& gru) { return described(prefix, gru); }
  static void list_tensors(const Gru& gru, const Shape& in, Inventory& to) {
    list_weights(gru, in, to);
    to.add_constant("bias_ih", {gates(gru)}, 0);
    to.add_constant("bias_hh", {gates(gru)}, 0);
  }
  static std::string to_onnx(const Gru& gru, const std::string& in, OnnxGraph& graph) {
    return recurrent_node(
        "GRU", gru.every_step,
        {in, store_gates("weight_ih", gru_order, graph), store_gates("weight_hh", gru_order, graph),
         store_biases({"bias_ih", "bias_hh"}, gru_order, graph)},
        {onnx::attribute("hidden_size", gru.hidden),
         onnx::attribute("linear_before_reset", std::int64_t{1})},
        graph);
  }
};

}  // namespace

const LayerEntry entries::gru = entry_for<GruKind>();

}  // namespace fast::nn
