#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>
#include <functional>
#include <numeric>

namespace fast::nn {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

template <class... Args>
void demand(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  require(condition, ErrorKind::argument, format, std::forward<Args>(args)...);
}

std::int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Shape output_of(const Dense& dense, const Shape& in) {
  demand(in.size() == 1, "it takes vectors, its input is {}; put a Flatten before it",
         describe(in));
  demand(dense.units > 0, "units must be positive");
  return {dense.units};
}

/// Windows of `size` along a side of `length`.
std::int64_t windows(std::int64_t length, std::int64_t size, std::int64_t stride) {
  return (length - size) / stride + 1;
}

void demand_image(const Shape& in) {
  demand(in.size() == 3, "it takes images [channels x height x width], its input is {}",
         describe(in));
}

void demand_window(const Shape& in, std::int64_t size, std::int64_t stride, std::int64_t padding) {
  demand_image(in);
  demand(size > 0 && stride > 0 && padding >= 0,
         "sizes and strides must be positive, padding not negative");
  demand(padding < size, "padding must be smaller than the kernel");
  demand(in[1] + 2 * padding >= size && in[2] + 2 * padding >= size,
         "its window is larger than its input {}", describe(in));
}

Shape output_of(const Conv2d& conv, const Shape& in) {
  demand_window(in, conv.kernel, conv.stride, conv.padding);
  demand(conv.channels > 0, "channels must be positive");
  return {conv.channels, windows(in[1] + 2 * conv.padding, conv.kernel, conv.stride),
          windows(in[2] + 2 * conv.padding, conv.kernel, conv.stride)};
}

Shape output_of(const Relu&, const Shape& in) { return in; }

Shape output_of(const MaxPool& pool, const Shape& in) {
  demand_window(in, pool.size, pool.stride, pool.padding);
  demand(2 * pool.padding <= pool.size, "padding must be at most half of the window");
  return {in[0], windows(in[1] + 2 * pool.padding, pool.size, pool.stride),
          windows(in[2] + 2 * pool.padding, pool.size, pool.stride)};
}

Shape output_of(const Flatten&, const Shape& in) { return {product(in)}; }

Shape output_of(const BatchNorm& norm, const Shape& in) {
  demand_image(in);
  demand(norm.momentum > 0 && norm.momentum <= 1, "momentum {} is not in (0, 1]", norm.momentum);
  demand(norm.epsilon > 0, "epsilon {} is not positive", norm.epsilon);
  return in;
}

Shape output_of(const GroupNorm& norm, const Shape& in) {
  demand_image(in);
  demand(norm.groups > 0 && in[0] % norm.groups == 0,
         "{} channels do not split into {} groups of equal size", in[0], norm.groups);
  demand(norm.epsilon > 0, "epsilon {} is not positive", norm.epsilon);
  return in;
}

Shape output_of(const GlobalAveragePool&, const Shape& in) {
  demand_image(in);
  return {in[0]};
}

Shape output_of(const Lstm& lstm, const Shape& in) {
  demand(in.size() == 2, "it takes sequences [steps x features], its input is {}", describe(in));
  demand(lstm.hidden > 0, "hidden units must be positive");
  if (lstm.every_step) return {in[0], lstm.hidden};
  return {lstm.hidden};
}

/// The input's shape and those of the layers' outputs; `where` leads messages.
std::vector<Shape> through(const std::vector<LayerSpec>& layers, const Shape& in,
                           const std::string& where);

Shape output_of(const Residual& residual, const Shape& in) {
  demand_image(in);
  demand(!residual.body.empty(), "its body is empty");
  const Shape body = through(residual.body, in, "body").back();
  const Shape shortcut = through(residual.shortcut, in, "shortcut").back();
  demand(body.size() == 3 && body == shortcut,
         "its body gives {}, its shortcut {}; images of one shape are required", describe(body),
         describe(shortcut));
  return body;
}

std::vector<Shape> through(const std::vector<LayerSpec>& layers, const Shape& in,
                           const std::string& where) {
  std::vector<Shape> all{in};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    try {
      all.push_back(std::visit([&](const auto& l) { return output_of(l, all[i]); }, layers[i]));
    } catch (const Error& error) {
      fail(error.kind(), "{}: layer {} ({}): {}", where, i + 1, describe(layers[i]), error.what());
    }
  }
  return all;
}

/// Gathers parameters or buffers with running offsets.
class List {
 public:
  void add(std::string name, Shape shape, std::int64_t fan_in, double initial, std::size_t layer) {
    const auto count = static_cast<std::size_t>(product(shape));
    list_.push_back({std::move(name), std::move(shape), offset_, count, fan_in, initial, layer});
    offset_ += count;
  }
  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  std::vector<ParameterSpec> list_;
  std::size_t offset_ = 0;
};

/// Walks a model's layers in order, those of residual blocks with them.
struct Inventory {
  List parameters, buffers;
  std::size_t layer = 0;  // of the model
  int convolutions = 0, dense_layers = 0, batch_norms = 0, group_norms = 0, recurrent = 0;

  void add(const LayerSpec& spec, const Shape& in) {
    std::visit([&](const auto& l) { add_of(l, in); }, spec);
  }

 private:
  template <class Other>
  void add_of(const Other&, const Shape&) {}

  void add_of(const Conv2d& conv, const Shape& in) {
    const std::string name = fmt::format("conv{}", ++convolutions);
    parameters.add(name + ".weight", {conv.channels, in[0], conv.kernel, conv.kernel},
                   in[0] * conv.kernel * conv.kernel, 0, layer);
    if (conv.bias) parameters.add(name + ".bias", {conv.channels}, 0, 0, layer);
  }
  void add_of(const Dense& dense, const Shape& in) {
    const std::string name = fmt::format("fc{}", ++dense_layers);
    parameters.add(name + ".weight", {dense.units, in[0]}, in[0], 0, layer);
    parameters.add(name + ".bias", {dense.units}, 0, 0, layer);
  }
  void add_of(const BatchNorm&, const Shape& in) {
    const std::string name = fmt::format("bn{}", ++batch_norms);
    add_scale(name, in[0]);
    buffers.add(name + ".running_mean", {in[0]}, 0, 0, layer);
    buffers.add(name + ".running_var", {in[0]}, 0, 1, layer);
  }
  void add_of(const GroupNorm&, const Shape& in) {
    add_scale(fmt::format("gn{}", ++group_norms), in[0]);
  }
  void add_of(const Lstm& lstm, const Shape& in) {
    const std::string name = fmt::format("lstm{}", ++recurrent);
    const std::int64_t gates = 4 * lstm.hidden, sums = in[1] + lstm.hidden;
    parameters.add(name + ".weight_ih", {gates, in[1]}, sums, 0, layer);
    parameters.add(name + ".weight_hh", {gates, lstm.hidden}, sums, 0, layer);
    parameters.add(name + ".bias", {gates}, 0, 0, layer);
  }
  void add_of(const Residual& residual, const Shape& in) {
    for (const auto* part : {&residual.body, &residual.shortcut}) {
      const std::vector<Shape> shapes = through(*part, in, "residual");
      for (std::size_t i = 0; i < part->size(); ++i) add((*part)[i], shapes[i]);
    }
  }
  void add_scale(const std::string& name, std::int64_t channels) {
    parameters.add(name + ".weight", {channels}, 0, 1, layer);
    parameters.add(name + ".bias", {channels}, 0, 0, layer);
  }
};

Inventory inventory_of(const ModelSpec& spec) {
  const std::vector<Shape> in = shapes(spec);
  Inventory inventory;
  for (; inventory.layer < spec.layers.size(); ++inventory.layer)
    inventory.add(spec.layers[inventory.layer], in[inventory.layer]);
  return inventory;
}

}  // namespace

std::string describe(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, "x")); }

std::string describe(const LayerSpec& layer) {
  return std::visit(
      Overloaded{
          [](const Dense& l) { return fmt::format("dense {}", l.units); },
          [](const Conv2d& l) {
            return fmt::format("conv2d {}, kernel {}, stride {}, padding {}", l.channels, l.kernel,
                               l.stride, l.padding);
          },
          [](const Relu&) { return std::string("relu"); },
          [](const MaxPool& l) {
            return fmt::format("max pool {}, stride {}, padding {}", l.size, l.stride, l.padding);
          },
          [](const Flatten&) { return std::string("flatten"); },
          [](const BatchNorm&) { return std::string("batch norm"); },
          [](const GroupNorm& l) { return fmt::format("group norm {}", l.groups); },
          [](const GlobalAveragePool&) { return std::string("global average pool"); },
          [](const Lstm& l) {
            return fmt::format("lstm {}{}", l.hidden, l.every_step ? ", every step" : "");
          },
          [](const Residual& l) { return fmt::format("residual of {} layers", l.body.size()); }},
      layer);
}

std::vector<Shape> shapes(const ModelSpec& spec) {
  demand(!spec.input.empty() && spec.input.size() <= 3 &&
             std::all_of(spec.input.begin(), spec.input.end(), [](auto n) { return n > 0; }),
         "ModelSpec {}: input {} is neither [features] nor [steps x features] nor [channels x "
         "height x width], all positive",
         spec.name, describe(spec.input));
  std::vector<Shape> all = through(spec.layers, spec.input, "ModelSpec " + spec.name);
  demand(all.back().size() == 1,
         "ModelSpec {}: its outputs {} are no vector of logits; end it "
         "with Flatten and Dense",
         spec.name, describe(all.back()));
  return all;
}

std::vector<Shape> shapes_through(const std::vector<LayerSpec>& layers, const Shape& input) {
  return through(layers, input, "layers");
}

bool takes(const ModelSpec& spec, const Shape& sample) {
  if (spec.input.size() < 3) return product(sample) == product(spec.input);
  Shape image = sample;
  if (image.size() == 2) image.insert(image.begin(), 1);
  return image == spec.input;
}

std::vector<ParameterSpec> parameters(const ModelSpec& spec) {
  return inventory_of(spec).parameters.take();
}

std::vector<ParameterSpec> buffers(const ModelSpec& spec) {
  return inventory_of(spec).buffers.take();
}

std::size_t parameter_count(const ModelSpec& spec) {
  const std::vector<ParameterSpec> list = parameters(spec);
  return list.empty() ? 0 : list.back().offset + list.back().count;
}

}  // namespace fast::nn
