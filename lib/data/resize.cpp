#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/resize.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast::data {
namespace {

constexpr std::int64_t longest_side = 16384;

/// 0: it is no number from 1 to longest_side.
std::int64_t side_from(std::string_view text) {
  std::int64_t value = 0;
  return reads(text, value) && value <= longest_side ? std::max<std::int64_t>(value, 0) : 0;
}

template <class T>
T stored(double value) {
  if constexpr (std::is_same_v<T, std::uint8_t>)
    return static_cast<T>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
  else
    return static_cast<T>(value);
}

}  // namespace

ImageSize image_size_from(std::string_view text) {
  const std::size_t x = std::min(text.find('x'), text.size());
  const ImageSize size{side_from(text.substr(0, x)),
                       side_from(text.substr(std::min(x + 1, text.size())))};
  require(size.rows > 0 && size.columns > 0, ErrorKind::argument,
          "\"{}\" is not a size of images; ROWSxCOLUMNS is required, as 224x224, each from 1 to {}",
          printable(text), longest_side);
  return size;
}

Resizer::Resizer(ImageSize from, ImageSize to) : from_(from), to_(to) {
  require(std::min({from.rows, from.columns, to.rows, to.columns}) > 0, ErrorKind::argument,
          "Resizer: from {}x{} to {}x{}; positive sides are required", from.rows, from.columns,
          to.rows, to.columns);
  rows_ = side(from.rows, to.rows);
  columns_ = side(from.columns, to.columns);
}

/// Samples of a new pixel: equally spaced, at most one old pixel apart. Each is interpolated
/// between the centers of two old pixels. All weights are for exact positions: sample k of pixel i
/// is at (2 (i samples + k) + 1) from / (2 samples to).
Resizer::Side Resizer::side(std::int64_t from, std::int64_t to) {
  const std::int64_t samples = (from + to - 1) / to;
  Side side;
  side.begin.push_back(0);
  for (std::int64_t i = 0; i < to; ++i) {
    const std::size_t begin = side.weights.size();
    std::int64_t first = 0;
    const auto add = [&](std::int64_t pixel, double weight) {
      if (weight == 0) return;
      if (side.weights.size() == begin) first = pixel;
      const std::size_t place = begin + static_cast<std::size_t>(pixel - first);
      if (side.weights.size() <= place) side.weights.resize(place + 1);
      side.weights[place] += weight / static_cast<double>(samples);
    };
    for (std::int64_t k = 0; k < samples; ++k) {
      const double position = static_cast<double>((2 * (i * samples + k) + 1) * from) /
                              static_cast<double>(2 * samples * to);
      const double place = std::clamp(position - 0.5, 0.0, static_cast<double>(from - 1));
      const double before = std::floor(place);
      add(static_cast<std::int64_t>(before), 1 - (place - before));
      add(static_cast<std::int64_t>(before) + 1, place - before);
    }
    side.first.push_back(static_cast<std::size_t>(first));
    side.begin.push_back(side.weights.size());
  }
  return side;
}

template <class T>
void Resizer::run(std::span<const T> from, std::span<T> into) const {
  const auto width = static_cast<std::size_t>(from_.columns);
  const auto height = static_cast<std::size_t>(from_.rows);
  const auto new_width = static_cast<std::size_t>(to_.columns);
  const auto new_height = static_cast<std::size_t>(to_.rows);
  const std::size_t planes = from.size() / from_size();
  require(from.size() == planes * from_size() && into.size() == planes * to_size(),
          ErrorKind::argument, "Resizer: {} values given, {} wanted; planes have {} and {}",
          from.size(), into.size(), from_size(), to_size());
  if (from_ == to_) {
    std::copy(from.begin(), from.end(), into.begin());
    return;
  }
  std::vector<double> wide(height * new_width), sums(new_width);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const T* old = from.data() + plane * from_size();
    for (std::size_t r = 0; r < height; ++r)
      for (std::size_t c = 0; c < new_width; ++c) {
        const T* pixel = old + r * width + columns_.first[c];
        double sum = 0;
        for (std::size_t w = columns_.begin[c]; w < columns_.begin[c + 1]; ++w)
          sum += columns_.weights[w] * static_cast<double>(*pixel++);
        wide[r * new_width + c] = sum;
      }
    T* out = into.data() + plane * to_size();
    for (std::size_t r = 0; r < new_height; ++r) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const double* row = wide.data() + rows_.first[r] * new_width;
      for (std::size_t w = rows_.begin[r]; w < rows_.begin[r + 1]; ++w, row += new_width)
        for (std::size_t c = 0; c < new_width; ++c) sums[c] += rows_.weights[w] * row[c];
      for (std::size_t c = 0; c < new_width; ++c) *out++ = stored<T>(sums[c]);
    }
  }
}

void Resizer::resize(std::span<const std::uint8_t> from, std::span<std::uint8_t> into) const {
  run(from, into);
}
void Resizer::resize(std::span<const float> from, std::span<float> into) const { run(from, into); }

namespace {

/// Samples that are resized when they are read.
class ResizedSource final : public SampleSource {
 public:
  ResizedSource(Dataset from, const Resizer& resizer) : from_(std::move(from)), resizer_(resizer) {}

  bool is_bytes() const override { return from_.is_bytes(); }
  std::vector<std::size_t> shards() const override { return from_.shards(); }
  std::size_t left_out() const override { return from_.source()->left_out(); }
  std::string why_left_out() const override { return from_.source()->why_left_out(); }

  void read(std::size_t sample, std::span<std::byte> into) const override {
    if (is_bytes())
      read_as<std::uint8_t>(sample, into);
    else
      read_as<float>(sample, into);
  }

 private:
  template <class T>
  void read_as(std::size_t sample, std::span<std::byte> into) const {
    std::vector<T> values(from_.sample_size());
    from_.copy(sample, std::as_writable_bytes(std::span(values)));
    resizer_.resize(std::span<const T>(values),
                    {reinterpret_cast<T*>(into.data()), into.size() / sizeof(T)});
  }

  Dataset from_;
  Resizer resizer_;
};

Targets targets_of(const Dataset& dataset) {
  Targets targets{{}, dataset.target_shape(), dataset.classes()};
  if (dataset.targets().empty())
    targets.values = std::vector(dataset.labels().begin(), dataset.labels().end());
  else
    targets.values = std::vector(dataset.targets().begin(), dataset.targets().end());
  return targets;
}

}  // namespace

Dataset resized(const Dataset& dataset, ImageSize to) {
  std::vector<std::int64_t> shape = dataset.sample_shape();
  require(shape.size() == 3, ErrorKind::argument,
          "resize: the samples of {} have the shape [{}], they are not images [channels x rows x "
          "columns]; leave the option out",
          printable(dataset.name()), fmt::join(shape, "x"));
  const ImageSize from{shape[1], shape[2]};
  if (from == to) return dataset;
  const Resizer resizer(from, to);
  shape = {shape[0], to.rows, to.columns};
  if (dataset.is_streamed())
    return {dataset.name(), shape, std::make_shared<ResizedSource>(dataset, resizer),
            targets_of(dataset)};
  const std::size_t planes = dataset.size() * static_cast<std::size_t>(shape[0]);
  return std::visit(
      [&](const auto& old) -> Dataset {
        using T = std::remove_const_t<typename std::decay_t<decltype(old)>::element_type>;
        std::vector<T> values(planes * resizer.to_size());
        resizer.resize(old, values);
        return {dataset.name(), shape, std::move(values), targets_of(dataset)};
      },
      dataset.values());
}

}  // namespace fast::data
