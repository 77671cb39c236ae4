#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/dataset.hpp>
#include <utility>

namespace fast::data {

struct Dataset::Storage {
  std::string name;
  std::vector<std::int64_t> sample_shape;
  std::size_t sample_size = 1;
  Borrowed memory;
  int classes = 0;

  std::size_t channels() const {
    return sample_shape.empty() ? 1 : static_cast<std::size_t>(sample_shape.front());
  }
};

namespace {

void check_labels(const std::string& name, std::span<const std::int32_t> labels, int classes) {
  const auto bad = std::find_if(labels.begin(), labels.end(), [classes](std::int32_t label) {
    return label < 0 || label >= classes;
  });
  if (bad == labels.end()) return;
  fail(
      ErrorKind::data,
      "data: {}: sample {} has label {}, outside the {} classes (0..{}); correct the labels or the "
      "number of classes",
      name, bad - labels.begin(), *bad, classes, classes - 1);
}

/// value × scale + offset, a channel.
struct Affine {
  float scale;
  float offset;
};

std::vector<Affine> affine(const Normalization& n, std::size_t channels, float unit) {
  const auto fits = [channels](std::size_t count) { return count == 1 || count == channels; };
  require(fits(n.mean.size()) && fits(n.stddev.size()), ErrorKind::argument,
          "normalization: {} means and {} standard deviations for {} channels; give one, or one a "
          "channel",
          n.mean.size(), n.stddev.size(), channels);
  std::vector<Affine> result(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const float mean = n.mean[n.mean.size() == 1 ? 0 : c];
    const float stddev = n.stddev[n.stddev.size() == 1 ? 0 : c];
    require(std::isfinite(mean) && std::isfinite(stddev) && stddev > 0, ErrorKind::argument,
            "normalization: mean {} and standard deviation {} of channel {}; both must be finite, "
            "the latter positive",
            mean, stddev, c);
    result[c] = {unit / stddev, -mean / stddev};
  }
  return result;
}

/// Memory that keeps itself.
Dataset::Borrowed own(Dataset::Values values, std::vector<std::int32_t> labels) {
  using Owned = std::pair<Dataset::Values, std::vector<std::int32_t>>;
  const auto owner = std::make_shared<const Owned>(std::move(values), std::move(labels));
  Dataset::Borrowed memory{{}, owner->second, owner};
  std::visit([&]<class T>(const std::vector<T>& v) { memory.values = std::span<const T>(v); },
             owner->first);
  return memory;
}

template <class T>
constexpr float unit_of = std::is_same_v<T, std::uint8_t> ? 1.0F / 255.0F : 1.0F;

}  // namespace

Dataset::Dataset(std::string name, std::vector<std::int64_t> sample_shape, Values values,
                 std::vector<std::int32_t> labels, int classes)
    : Dataset(std::move(name), std::move(sample_shape), own(std::move(values), std::move(labels)),
              classes) {}

Dataset::Dataset(std::string name, std::vector<std::int64_t> sample_shape, Borrowed memory,
                 int classes) {
  std::size_t sample_size = 1;
  for (const std::int64_t side : sample_shape) {
    require(side > 0 &&
                !__builtin_mul_overflow(sample_size, static_cast<std::size_t>(side), &sample_size),
            ErrorKind::data, "data: {}: the sample shape has a side {}; sides must be positive",
            name, side);
  }
  const std::size_t count = std::visit([](const auto& v) { return v.size(); }, memory.values);
  std::size_t wanted = 0;
  require(!__builtin_mul_overflow(memory.labels.size(), sample_size, &wanted) && count == wanted,
          ErrorKind::data, "data: {}: {} values for {} labels of {} values each; they must match",
          name, count, memory.labels.size(), sample_size);
  check_labels(name, memory.labels, classes);
  size_ = memory.labels.size();
  storage_ = std::make_shared<const Storage>(
      Storage{std::move(name), std::move(sample_shape), sample_size, std::move(memory), classes});
}

const std::string& Dataset::name() const {
  static const std::string none;
  return storage_ ? storage_->name : none;
}

int Dataset::classes() const { return storage_ ? storage_->classes : 0; }

const std::vector<std::int64_t>& Dataset::sample_shape() const {
  static const std::vector<std::int64_t> none;
  return storage_ ? storage_->sample_shape : none;
}

std::size_t Dataset::sample_size() const { return storage_ ? storage_->sample_size : 0; }

std::span<const std::int32_t> Dataset::labels() const {
  if (!storage_) return {};
  return storage_->memory.labels.subspan(begin_, size_);
}

std::variant<std::span<const std::uint8_t>, std::span<const float>> Dataset::values() const {
  if (!storage_) return {};
  decltype(Borrowed::values) part;
  const std::size_t begin = begin_ * sample_size(), count = size_ * sample_size();
  std::visit([&](const auto& all) { part = all.subspan(begin, count); }, storage_->memory.values);
  return part;
}

Dataset Dataset::slice(std::size_t begin, std::size_t count) const {
  require(begin <= size_ && count <= size_ - begin, ErrorKind::argument,
          "Dataset::slice: {} samples from {} on were asked of \"{}\", which has {}", count, begin,
          name(), size_);
  Dataset part = *this;
  part.begin_ += begin;
  part.size_ = count;
  return part;
}

void Dataset::gather(std::span<const std::size_t> indices, const Normalization& normalization,
                     std::span<float> out) const {
  const std::size_t size = sample_size();
  require(out.size() == indices.size() * size, ErrorKind::argument,
          "Dataset::gather: room for {} values, {} samples of {} need {}", out.size(),
          indices.size(), size, indices.size() * size);
  if (indices.empty()) return;
  const auto last = std::max_element(indices.begin(), indices.end());
  require(*last < size_, ErrorKind::argument, "Dataset::gather: sample {} of \"{}\", which has {}",
          *last, name(), size_);
  const std::size_t channels = storage_->channels(), plane = size / channels;
  const auto copy = [&]<class T>(std::span<const T> values) {
    const std::vector<Affine> maps = affine(normalization, channels, unit_of<T>);
    float* to = out.data();
    for (const std::size_t index : indices) {
      const T* from = values.data() + (begin_ + index) * size;
      for (const auto [scale, offset] : maps) {
        for (std::size_t i = 0; i < plane; ++i) {
          to[i] = static_cast<float>(from[i]) * scale + offset;
        }
        from += plane;
        to += plane;
      }
    }
  };
  std::visit(copy, storage_->memory.values);
}

Normalization Dataset::measure() const {
  if (size_ == 0) return {};
  const std::size_t channels = storage_->channels(), plane = sample_size() / channels;
  Normalization result{std::vector<float>(channels), std::vector<float>(channels)};
  const auto moments = [&]<class T>(std::span<const T> values) {
    for (std::size_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (std::size_t s = begin_; s < begin_ + size_; ++s) {
        const T* from = values.data() + s * sample_size() + c * plane;
        for (std::size_t i = 0; i < plane; ++i) {
          const double value = static_cast<double>(from[i]) * static_cast<double>(unit_of<T>);
          sum += value;
          squares += value * value;
        }
      }
      const double count = static_cast<double>(size_ * plane), mean = sum / count;
      const double variance = squares / count - mean * mean;
      result.mean[c] = static_cast<float>(mean);
      result.stddev[c] = variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0F;
    }
  };
  std::visit(moments, storage_->memory.values);
  return result;
}

}  // namespace fast::data
