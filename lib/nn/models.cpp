#include <fmt/ranges.h>

#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>

namespace fast::nn {

ModelSpec lenet5(std::int64_t classes, const Shape& image) {
  return {"lenet5",
          image,
          {Conv2d{6, 5, 1, 2}, Relu{}, MaxPool{}, Conv2d{16, 5}, Relu{}, MaxPool{}, Flatten{},
           Dense{120}, Relu{}, Dense{84}, Relu{}, Dense{classes}}};
}

ModelSpec mlp(const std::vector<std::int64_t>& widths) {
  require(widths.size() >= 2, ErrorKind::argument,
          "mlp: {} widths given, two at least are required: inputs, hidden layers, classes",
          widths.size());
  ModelSpec spec{fmt::format("mlp {}", fmt::join(widths, "-")), {widths.front()}, {}};
  for (std::size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) spec.layers.emplace_back(Relu{});
    spec.layers.emplace_back(Dense{widths[i]});
  }
  return spec;
}

ModelSpec lstm(std::int64_t hidden, std::int64_t classes, const Shape& sequence, bool every_step) {
  return {fmt::format("lstm {}", hidden), sequence, {Lstm{hidden, every_step}, Dense{classes}}};
}

ModelSpec resnet20(std::int64_t classes, const Shape& image) {
  const auto conv = [](std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    return Conv2d{channels, kernel, stride, kernel / 2, false};
  };
  ModelSpec spec{"resnet20", image, {conv(16, 3, 1), BatchNorm{}, Relu{}}};
  for (const std::int64_t channels : {16, 32, 64})
    for (int block = 0; block < 3; ++block) {
      const bool first = block == 0 && channels > 16;
      const std::int64_t stride = first ? 2 : 1;
      Residual residual{
          {conv(channels, 3, stride), BatchNorm{}, Relu{}, conv(channels, 3, 1), BatchNorm{}}, {}};
      if (first) residual.shortcut = {conv(channels, 1, stride), BatchNorm{}};
      spec.layers.emplace_back(std::move(residual));
      spec.layers.emplace_back(Relu{});
    }
  spec.layers.emplace_back(GlobalAveragePool{});
  spec.layers.emplace_back(Dense{classes});
  return spec;
}

ModelSpec resnet50(std::int64_t classes, const Shape& image) {
  const auto conv = [](std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    return Conv2d{channels, kernel, stride, kernel / 2, false};
  };
  ModelSpec spec{"resnet50", image, {conv(64, 7, 2), BatchNorm{}, Relu{}, MaxPool{3, 2, 1}}};
  struct Stage {
    std::int64_t width;
    int blocks;
  };
  for (const auto& [width, blocks] : {Stage{64, 3}, {128, 4}, {256, 6}, {512, 3}})
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && width > 64 ? 2 : 1;
      Residual residual{{conv(width, 1, 1), BatchNorm{}, Relu{}, conv(width, 3, stride),
                         BatchNorm{}, Relu{}, conv(4 * width, 1, 1), BatchNorm{}},
                        {}};
      if (block == 0) residual.shortcut = {conv(4 * width, 1, stride), BatchNorm{}};
      spec.layers.emplace_back(std::move(residual));
      spec.layers.emplace_back(Relu{});
    }
  spec.layers.emplace_back(GlobalAveragePool{});
  spec.layers.emplace_back(Dense{classes});
  return spec;
}

}  // namespace fast::nn
