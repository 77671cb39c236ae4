#include <fast/nn/onnx.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <fast/core/error.hpp>
#include <optional>

namespace fast::nn {
namespace {

constexpr int operator_set = 15, ir_version = 8;

/// A message of protocol buffers, as onnx.proto numbers its fields.
class Message {
 public:
  Message& number(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& part(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

Message attribute(std::string_view name, std::int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
Message attribute(std::string_view name, float value) {
  return Message().text(1, name).real(2, value).number(20, 1);
}
Message attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  Message message = Message().text(1, name);
  for (const std::int64_t value : values) message.number(8, value);
  return message.number(20, 7);
}

constexpr int int64_type = 7;
int element_type(DType dtype) { return dtype == DType::f64 ? 11 : 1; }

/// Of a batch of any size.
Message described(std::string_view name, const Shape& shape, DType dtype) {
  Message sides;
  sides.part(1, Message().text(2, "batch"));
  for (const std::int64_t side : shape) sides.part(1, Message().number(1, side));
  const Message tensor = Message().number(1, element_type(dtype)).part(2, sides);
  return Message().text(1, name).part(2, Message().part(1, tensor));
}

/// Rows of gates i, f, g, o in ONNX's order i, o, f, g.
std::string gates_of(const TensorView& view) {
  const std::string_view rows(static_cast<const char*>(view.data), view.size_bytes());
  const std::size_t size = rows.size() / 4;
  std::string moved;
  for (const std::size_t gate : {0, 3, 1, 2}) moved += rows.substr(gate * size, size);
  return moved;
}

/// Adds a node a layer, with its tensors; names are counted as nn::parameters() counts them.
class Graph {
 public:
  Graph(const ModelSpec& spec, const std::vector<TensorView>& tensors) : tensors_(tensors) {
    for (const auto& list : {parameters(spec), buffers(spec)}) {
      for (const ParameterSpec& each : list) check(each);
    }
  }

  std::string add(const std::vector<LayerSpec>& layers, std::string input) {
    for (const LayerSpec& layer : layers) {
      input = std::visit([&](const auto& l) { return add_one(l, input); }, layer);
    }
    return input;
  }

  DType dtype() const { return dtype_.value_or(DType::f32); }
  Message& message() { return graph_; }

  /// `skipped` outputs that nothing reads come before its own.
  std::string node(std::string_view kind, const std::vector<std::string>& inputs,
                   const std::vector<Message>& attributes = {}, std::string output = "",
                   int skipped = 0) {
    if (output.empty()) output = fmt::format("value{}", ++values_);
    Message node;
    for (const std::string& input : inputs) node.text(1, input);
    for (int i = 0; i < skipped; ++i) node.text(2, "");
    node.text(2, output).text(4, kind);
    for (const Message& each : attributes) node.part(5, each);
    graph_.part(1, node);
    return output;
  }

 private:
  void check(const ParameterSpec& spec) {
    const auto found = find(spec.name);
    require(found != tensors_.end() && found->shape == spec.shape, ErrorKind::argument,
            "to_onnx: the model has {} \"{}\", the tensors given have {}; give those of this model",
            nn::describe(spec.shape), spec.name,
            found == tensors_.end() ? "none of that name" : fast::describe(*found));
    dtype_ = dtype_.value_or(found->dtype);
    require(found->dtype == *dtype_ && (*dtype_ == DType::f32 || *dtype_ == DType::f64),
            ErrorKind::argument, "to_onnx: {}; tensors of one type are required, f32 or f64",
            fast::describe(*found));
  }
  std::vector<TensorView>::const_iterator find(const std::string& name) const {
    return std::find_if(tensors_.begin(), tensors_.end(),
                        [&](const TensorView& view) { return view.name == name; });
  }

  std::string store(const std::string& name, const Shape& shape, int type, std::string_view bytes) {
    Message tensor;
    for (const std::int64_t side : shape) tensor.number(1, side);
    graph_.part(5, tensor.number(2, type).text(8, name).text(9, bytes));
    return name;
  }
  /// The model's tensor of that name, as it is.
  std::string stored(const std::string& name) {
    const TensorView& view = *find(name);
    return store(name, view.shape, element_type(view.dtype),
                 {static_cast<const char*>(view.data), view.size_bytes()});
  }

  std::string add_one(const Dense&, const std::string& in) {
    const std::string name = fmt::format("fc{}", ++dense_);
    return node("Gemm", {in, stored(name + ".weight"), stored(name + ".bias")},
                {attribute("transB", std::int64_t{1})});
  }
  std::string add_one(const Conv2d& conv, const std::string& in) {
    const std::string name = fmt::format("conv{}", ++convolutions_);
    std::vector<std::string> inputs{in, stored(name + ".weight")};
    if (conv.bias) inputs.push_back(stored(name + ".bias"));
    const std::int64_t p = conv.padding;
    return node("Conv", inputs,
                {attribute("kernel_shape", {conv.kernel, conv.kernel}),
                 attribute("strides", {conv.stride, conv.stride}),
                 attribute("pads", std::vector<std::int64_t>{p, p, p, p})});
  }
  std::string add_one(const BatchNorm& norm, const std::string& in) {
    const std::string name = fmt::format("bn{}", ++batch_norms_);
    return node("BatchNormalization",
                {in, stored(name + ".weight"), stored(name + ".bias"),
                 stored(name + ".running_mean"), stored(name + ".running_var")},
                {attribute("epsilon", static_cast<float>(norm.epsilon))});
  }
  std::string add_one(const GroupNorm&, const std::string&) {
    fail(ErrorKind::argument,
         "to_onnx: group normalization is not in operator set {}; export batch norm or none",
         operator_set);
  }
  /// ONNX's sequences are [steps x batch x features], with an axis of directions.
  std::string add_one(const Lstm& lstm, const std::string& in) {
    const std::string name = fmt::format("lstm{}", ++recurrent_);
    const auto turned = [&](const std::string& sequences) {
      return node("Transpose", {sequences},
                  {attribute("perm", std::vector<std::int64_t>{1, 0, 2})});
    };
    const std::vector<std::string> inputs{turned(in), stored_gates(name + ".weight_ih"),
                                          stored_gates(name + ".weight_hh"),
                                          stored_gates(name + ".bias")};
    const std::vector<Message> attributes{attribute("hidden_size", lstm.hidden)};
    if (!lstm.every_step)  // the second output is the last step
      return node("Squeeze", {node("LSTM", inputs, attributes, "", 1), axis(name, 0)});
    return turned(node("Squeeze", {node("LSTM", inputs, attributes), axis(name, 1)}));
  }
  /// Rows gate by gate as ONNX has them; of biases there come as many zeros, the hidden units' own.
  std::string stored_gates(const std::string& name) {
    const TensorView& view = *find(name);
    std::string bytes = gates_of(view);
    Shape shape = view.shape;
    if (shape.size() == 1) {
      bytes.resize(2 * bytes.size());
      shape[0] *= 2;
    }
    shape.insert(shape.begin(), 1);
    return store(name, shape, element_type(view.dtype), bytes);
  }
  std::string axis(const std::string& name, char number) {
    const std::array<char, 8> little_endian{number};
    return store(name + ".axis", {1}, int64_type, {little_endian.data(), little_endian.size()});
  }
  std::string add_one(const Relu&, const std::string& in) { return node("Relu", {in}); }
  std::string add_one(const MaxPool& pool, const std::string& in) {
    const std::int64_t p = pool.padding;
    return node("MaxPool", {in},
                {attribute("kernel_shape", {pool.size, pool.size}),
                 attribute("strides", {pool.stride, pool.stride}),
                 attribute("pads", std::vector<std::int64_t>{p, p, p, p})});
  }
  std::string add_one(const Flatten&, const std::string& in) {
    return node("Flatten", {in}, {attribute("axis", std::int64_t{1})});
  }
  std::string add_one(const GlobalAveragePool&, const std::string& in) {
    return add_one(Flatten{}, node("GlobalAveragePool", {in}));
  }
  std::string add_one(const Residual& residual, const std::string& in) {
    const std::string body = add(residual.body, in);
    return node("Add", {body, add(residual.shortcut, in)});
  }

  const std::vector<TensorView>& tensors_;
  std::optional<DType> dtype_;
  Message graph_;
  int values_ = 0, dense_ = 0, convolutions_ = 0, batch_norms_ = 0, recurrent_ = 0;
};

bool has(const std::vector<TensorView>& tensors, const ModelSpec& spec) {
  std::vector<ParameterSpec> all = parameters(spec);
  for (ParameterSpec& buffer : buffers(spec)) all.push_back(std::move(buffer));
  return all.size() == tensors.size() &&
         std::all_of(all.begin(), all.end(), [&](const ParameterSpec& own) {
           return std::any_of(tensors.begin(), tensors.end(), [&](const TensorView& view) {
             return view.name == own.name && view.shape == own.shape;
           });
         });
}

}  // namespace

std::string to_onnx(const ModelSpec& spec, const std::vector<TensorView>& tensors) {
  Graph graph(spec, tensors);
  const std::string last = graph.add(spec.layers, "input");
  graph.node("Identity", {last}, {}, "logits");
  graph.message()
      .text(2, spec.name)
      .part(11, described("input", spec.input, graph.dtype()))
      .part(12, described("logits", shapes(spec).back(), graph.dtype()));
  return Message()
      .number(1, ir_version)
      .text(2, "fast")
      .part(7, graph.message())
      .part(8, Message().text(1, "").number(2, operator_set))
      .bytes();
}

ModelSpec recognize(const std::vector<TensorView>& tensors) {
  std::vector<std::int64_t> widths;
  for (int layer = 1;; ++layer) {
    const std::string name = fmt::format("fc{}.weight", layer);
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const TensorView& view) { return view.name == name; });
    if (found == tensors.end() || found->shape.size() != 2) break;
    if (widths.empty()) widths.push_back(found->shape[1]);
    widths.push_back(found->shape[0]);
  }
  if (widths.size() >= 2 && *std::min_element(widths.begin(), widths.end()) > 0) {
    for (const ModelSpec& spec : {lenet5(widths.back()), resnet20(widths.back()), mlp(widths),
                                  lstm(widths.front(), widths.back())}) {
      if (has(tensors, spec)) return spec;
    }
  }
  fail(ErrorKind::argument,
       "these {} tensors are those of no model known here (lenet5, resnet20, mlp, lstm); describe "
       "the "
       "model by a ModelSpec",
       tensors.size());
}

}  // namespace fast::nn
