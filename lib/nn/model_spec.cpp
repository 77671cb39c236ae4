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

void demand_window(const Shape& in, std::int64_t size, std::int64_t stride, std::int64_t padding) {
  demand(in.size() == 3, "it takes images [channels x height x width], its input is {}",
         describe(in));
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
  demand_window(in, pool.size, pool.stride, 0);
  return {in[0], windows(in[1], pool.size, pool.stride), windows(in[2], pool.size, pool.stride)};
}

Shape output_of(const Flatten&, const Shape& in) { return {product(in)}; }

/// Gathers parameters with running offsets.
class ParameterList {
 public:
  void add(std::string name, Shape shape, std::int64_t fan_in, std::size_t layer) {
    const auto count = static_cast<std::size_t>(product(shape));
    list_.push_back({std::move(name), std::move(shape), offset_, count, fan_in, layer});
    offset_ += count;
  }
  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  std::vector<ParameterSpec> list_;
  std::size_t offset_ = 0;
};

}  // namespace

std::string describe(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, "x")); }

std::string describe(const LayerSpec& layer) {
  return std::visit(Overloaded{[](const Dense& l) { return fmt::format("dense {}", l.units); },
                               [](const Conv2d& l) {
                                 return fmt::format("conv2d {}, kernel {}, stride {}, padding {}",
                                                    l.channels, l.kernel, l.stride, l.padding);
                               },
                               [](const Relu&) { return std::string("relu"); },
                               [](const MaxPool& l) {
                                 return fmt::format("max pool {}, stride {}", l.size, l.stride);
                               },
                               [](const Flatten&) { return std::string("flatten"); }},
                    layer);
}

std::vector<Shape> shapes(const ModelSpec& spec) {
  demand((spec.input.size() == 1 || spec.input.size() == 3) &&
             std::all_of(spec.input.begin(), spec.input.end(), [](auto n) { return n > 0; }),
         "ModelSpec {}: input {} is neither [features] nor [channels x height x width], all "
         "positive",
         spec.name, describe(spec.input));
  std::vector<Shape> all{spec.input};
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    try {
      all.push_back(
          std::visit([&](const auto& l) { return output_of(l, all[i]); }, spec.layers[i]));
    } catch (const Error& error) {
      fail(error.kind(), "ModelSpec {}: layer {} ({}): {}", spec.name, i + 1,
           describe(spec.layers[i]), error.what());
    }
  }
  demand(all.back().size() == 1,
         "ModelSpec {}: its outputs {} are no vector of logits; end it "
         "with Flatten and Dense",
         spec.name, describe(all.back()));
  return all;
}

std::vector<ParameterSpec> parameters(const ModelSpec& spec) {
  const std::vector<Shape> in = shapes(spec);
  ParameterList list;
  int convolutions = 0, dense_layers = 0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (const auto* conv = std::get_if<Conv2d>(&spec.layers[i])) {
      const std::string name = fmt::format("conv{}", ++convolutions);
      list.add(name + ".weight", {conv->channels, in[i][0], conv->kernel, conv->kernel},
               in[i][0] * conv->kernel * conv->kernel, i);
      list.add(name + ".bias", {conv->channels}, 0, i);
    } else if (const auto* dense = std::get_if<Dense>(&spec.layers[i])) {
      const std::string name = fmt::format("fc{}", ++dense_layers);
      list.add(name + ".weight", {dense->units, in[i][0]}, in[i][0], i);
      list.add(name + ".bias", {dense->units}, 0, i);
    }
  }
  return list.take();
}

std::size_t parameter_count(const ModelSpec& spec) {
  const std::vector<ParameterSpec> list = parameters(spec);
  return list.empty() ? 0 : list.back().offset + list.back().count;
}

ModelSpec lenet5(std::int64_t classes) {
  return {"lenet5",
          {1, 28, 28},
          {Conv2d{6, 5, 1, 2}, Relu{}, MaxPool{}, Conv2d{16, 5}, Relu{}, MaxPool{}, Flatten{},
           Dense{120}, Relu{}, Dense{84}, Relu{}, Dense{classes}}};
}

ModelSpec mlp(const std::vector<std::int64_t>& widths) {
  demand(widths.size() >= 2,
         "mlp: {} widths given, two at least are required: inputs, hidden layers, classes",
         widths.size());
  ModelSpec spec{fmt::format("mlp {}", fmt::join(widths, "-")), {widths.front()}, {}};
  for (std::size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) spec.layers.emplace_back(Relu{});
    spec.layers.emplace_back(Dense{widths[i]});
  }
  return spec;
}

}  // namespace fast::nn
