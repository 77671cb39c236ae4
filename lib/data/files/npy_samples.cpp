#include "data/files/npy_samples.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <type_traits>
#include <utility>

namespace fast::data {
namespace {

/// 1, 3 or 4 channels: gray, RGB and RGBA.
bool has_channels_last(const std::vector<std::int64_t>& sample) {
  const bool are_channels =
      sample.size() == 3 && (sample[2] == 1 || sample[2] == 3 || sample[2] == 4);
  return are_channels && sample[0] > 4;
}

/// From rows × columns × channels to channels × rows × columns, each sample.
template <class T>
std::vector<T> channels_first(const std::vector<T>& values, std::size_t pixels,
                              std::size_t channels) {
  std::vector<T> turned(values.size());
  const std::size_t size = pixels * channels;
  for (std::size_t begin = 0; begin < values.size(); begin += size) {
    for (std::size_t i = 0; i < size; ++i)
      turned[begin + i % channels * pixels + i / channels] = values[begin + i];
  }
  return turned;
}

}  // namespace

NpySamples npy_samples(NpyArray array, const std::string& name) {
  require(!array.shape.empty() && array.shape[0] > 0, ErrorKind::data,
          "numpy: {}: shape ({}); samples need a first side that counts them", printable(name),
          fmt::join(array.shape, ", "));
  NpySamples samples;
  samples.count = static_cast<std::size_t>(array.shape[0]);
  samples.shape.assign(array.shape.begin() + 1, array.shape.end());
  if (samples.shape.empty()) samples.shape = {1};
  if (samples.shape.size() == 2) samples.shape = {1, samples.shape[0], samples.shape[1]};
  const bool turn = has_channels_last(samples.shape);
  const auto& shape = samples.shape;
  const auto take = [&](auto& values) -> Dataset::Values {
    using T = typename std::decay_t<decltype(values)>::value_type;
    if (turn)
      values = channels_first(values, static_cast<std::size_t>(shape[0] * shape[1]),
                              static_cast<std::size_t>(shape[2]));
    if constexpr (std::is_same_v<T, std::int64_t>) {
      return std::vector<float>(values.begin(), values.end());
    } else {
      return std::move(values);
    }
  };
  samples.values = std::visit(take, array.values);
  if (turn) samples.shape = {shape[2], shape[0], shape[1]};
  if (const auto* floats = std::get_if<std::vector<float>>(&samples.values)) {
    const auto bad = std::find_if(floats->begin(), floats->end(),
                                  [](float value) { return !std::isfinite(value); });
    const std::size_t size = std::max<std::size_t>(1, floats->size() / samples.count);
    require(bad == floats->end(), ErrorKind::data,
            "numpy: {}: sample {} has a value that is not finite ({}); correct it or remove the "
            "sample",
            printable(name), static_cast<std::size_t>(bad - floats->begin()) / size,
            bad == floats->end() ? 0 : *bad);
  }
  return samples;
}

}  // namespace fast::data
