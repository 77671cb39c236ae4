#include <fast/nn/onnx.hpp>

#include <algorithm>
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

int element_type(DType dtype) { return dtype == DType::f64 ? 11 : 1; }

/// Of a batch of any size.
Message described(std::string_view name, const Shape& shape, DType dtype) {
  Message sides;
  sides.part(1, Message().text(2, "batch"));
  for (const std::int64_t side : shape) sides.part(1, Message().number(1, side));
  const Message tensor = Message().number(1, element_type(dtype)).part(2, sides);
  return Message().text(1, name).part(2, Message().part(1, tensor));
}

/// Adds a node a layer; names are counted as nn::parameters() counts them.
class Graph {
 public:
  explicit Graph(const std::vector<TensorView>& tensors) : tensors_(tensors) {}

  std::string add(const std::vector<LayerSpec>& layers, std::string input) {
    for (const LayerSpec& layer : layers) {
      input = std::visit([&](const auto& l) { return add_one(l, input); }, layer);
    }
    return input;
  }

  /// `spec`'s tensors of the model, or an error.
  void store(const ParameterSpec& spec) {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const TensorView& view) { return view.name == spec.name; });
    require(found != tensors_.end() && found->shape == spec.shape, ErrorKind::argument,
            "to_onnx: the model has {} \"{}\", the tensors given have {}; give those of this model",
            nn::describe(spec.shape), spec.name,
            found == tensors_.end() ? "none of that name" : fast::describe(*found));
    dtype_ = dtype_.value_or(found->dtype);
    require(found->dtype == *dtype_ && (*dtype_ == DType::f32 || *dtype_ == DType::f64),
            ErrorKind::argument, "to_onnx: {}; tensors of one type are required, f32 or f64",
            fast::describe(*found));
    Message tensor;
    for (const std::int64_t side : spec.shape) tensor.number(1, side);
    tensor.number(2, element_type(*dtype_)).text(8, spec.name);
    tensor.text(9, {static_cast<const char*>(found->data), found->size_bytes()});
    graph_.part(5, tensor);
  }

  DType dtype() const { return dtype_.value_or(DType::f32); }
  Message& message() { return graph_; }

  std::string node(std::string_view kind, const std::vector<std::string>& inputs,
                   const std::vector<Message>& attributes = {}, std::string output = "") {
    if (output.empty()) output = fmt::format("value{}", ++values_);
    Message node;
    for (const std::string& input : inputs) node.text(1, input);
    node.text(2, output).text(4, kind);
    for (const Message& each : attributes) node.part(5, each);
    graph_.part(1, node);
    return output;
  }

 private:
  std::string add_one(const Dense&, const std::string& in) {
    const std::string name = fmt::format("fc{}", ++dense_);
    return node("Gemm", {in, name + ".weight", name + ".bias"},
                {attribute("transB", std::int64_t{1})});
  }
  std::string add_one(const Conv2d& conv, const std::string& in) {
    const std::string name = fmt::format("conv{}", ++convolutions_);
    std::vector<std::string> inputs{in, name + ".weight"};
    if (conv.bias) inputs.push_back(name + ".bias");
    const std::int64_t p = conv.padding;
    return node("Conv", inputs,
                {attribute("kernel_shape", {conv.kernel, conv.kernel}),
                 attribute("strides", {conv.stride, conv.stride}),
                 attribute("pads", std::vector<std::int64_t>{p, p, p, p})});
  }
  std::string add_one(const BatchNorm& norm, const std::string& in) {
    const std::string name = fmt::format("bn{}", ++batch_norms_);
    return node(
        "BatchNormalization",
        {in, name + ".weight", name + ".bias", name + ".running_mean", name + ".running_var"},
        {attribute("epsilon", static_cast<float>(norm.epsilon))});
  }
  std::string add_one(const GroupNorm&, const std::string&) {
    fail(ErrorKind::argument,
         "to_onnx: group normalization is not in operator set {}; export batch norm or none",
         operator_set);
  }
  std::string add_one(const Lstm&, const std::string&) {
    fail(ErrorKind::argument,
         "to_onnx: recurrent layers are not exported yet; save the tensors as safetensors");
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
  int values_ = 0, dense_ = 0, convolutions_ = 0, batch_norms_ = 0;
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
  Graph graph(tensors);
  for (const auto& list : {parameters(spec), buffers(spec)}) {
    for (const ParameterSpec& parameter : list) graph.store(parameter);
  }
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
    for (const ModelSpec& spec : {lenet5(widths.back()), resnet20(widths.back()), mlp(widths)}) {
      if (has(tensors, spec)) return spec;
    }
  }
  fail(ErrorKind::argument,
       "these {} tensors are those of no model known here (lenet5, resnet20, mlp); describe the "
       "model by a ModelSpec",
       tensors.size());
}

}  // namespace fast::nn
