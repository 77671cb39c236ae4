#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/data/dataset.hpp>
#include <mutex>
#include <numeric>
#include <utility>

#include "data/channel_sums.hpp"
#include "data/files/split.hpp"
#include "data/target_scale.hpp"

namespace fast::data {

struct Dataset::Storage {
  std::string name;
  std::vector<std::int64_t> sample_shape;
  std::size_t sample_size = 1, target_size = 1;
  Borrowed memory;  ///< of a source: the targets alone
  int classes = 0;
  std::shared_ptr<const SampleSource> source = {};
  std::vector<std::size_t> selected = {};  ///< places of the samples; empty: all that there are

  struct Damage {
    std::mutex lock;
    std::string first;
    std::size_t place = 0;  ///< of that sample
  };
  std::unique_ptr<Damage> damage = std::make_unique<Damage>();

  void note(const char* what, std::size_t place) const {
    const std::lock_guard guard(damage->lock);
    if (!damage->first.empty() && damage->place <= place) return;
    damage->first = what;
    damage->place = place;
  }
  bool is_bytes() const { return source ? source->is_bytes() : memory.values.index() == 0; }
  std::size_t value_bytes() const { return is_bytes() ? 1 : sizeof(float); }

  std::size_t place(std::size_t index) const { return selected.empty() ? index : selected[index]; }

  /// How many samples lie before that place.
  std::size_t samples_before(std::size_t end) const {
    if (selected.empty()) return end;
    const auto at = std::lower_bound(selected.begin(), selected.end(), end);
    return static_cast<std::size_t>(at - selected.begin());
  }

  /// One sample's values, where they lie or, read from files, in `room`. Damage is noted.
  template <class T>
  const T* sample(std::size_t index, std::vector<T>& room) const {
    if (!source)
      return std::get<std::span<const T>>(memory.values).data() + place(index) * sample_size;
    room.resize(sample_size);
    try {
      source->read(place(index), std::as_writable_bytes(std::span(room)));
    } catch (const Error& error) {
      note(error.what(), place(index));
      throw;
    }
    return room.data();
  }
  std::size_t channels() const {
    return sample_shape.empty() ? 1 : static_cast<std::size_t>(sample_shape.front());
  }
};

namespace {

std::size_t product_of(const std::string& name, std::string_view what,
                       const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t side : shape) {
    require(side > 0 && !__builtin_mul_overflow(product, static_cast<std::size_t>(side), &product),
            ErrorKind::data, "data: {}: the {} shape has a side {}; sides must be positive", name,
            what, side);
  }
  return product;
}

void check_labels(const std::string& name, std::span<const std::int32_t> labels, std::size_t each,
                  int classes) {
  const auto bad = std::find_if(labels.begin(), labels.end(), [classes](std::int32_t label) {
    return label < 0 || label >= classes;
  });
  if (bad == labels.end()) return;
  fail(
      ErrorKind::data,
      "data: {}: sample {} has label {}, outside the {} classes (0..{}); correct the labels or the "
      "number of classes",
      name, static_cast<std::size_t>(bad - labels.begin()) / each, *bad, classes, classes - 1);
}

void check_targets(const std::string& name, std::span<const float> targets, std::size_t each,
                   int classes) {
  require(classes == 0, ErrorKind::data,
          "data: {}: {} classes for float targets; classes belong to labels", name, classes);
  const auto bad = std::find_if_not(targets.begin(), targets.end(),
                                    [](float target) { return std::isfinite(target); });
  require(bad == targets.end(), ErrorKind::data,
          "data: {}: sample {} has the target {}; targets must be finite", name,
          static_cast<std::size_t>(bad - targets.begin()) / each,
          bad == targets.end() ? 0.0F : *bad);
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

/// Its labels or targets are those.
void refer(Dataset::Borrowed& memory, const Targets& learned) {
  memory.labels = {};
  memory.targets = {};
  if (const auto* labels = std::get_if<std::vector<std::int32_t>>(&learned.values))
    memory.labels = *labels;
  else
    memory.targets = std::get<std::vector<float>>(learned.values);
}

/// Memory that keeps itself.
Dataset::Borrowed own(Dataset::Values values, Targets&& targets) {
  using Owned = std::pair<Dataset::Values, Targets>;
  const auto owner = std::make_shared<const Owned>(std::move(values), std::move(targets));
  Dataset::Borrowed memory{{}, {}, owner, {}, owner->second.shape};
  refer(memory, owner->second);
  std::visit([&]<class T>(const std::vector<T>& v) { memory.values = std::span<const T>(v); },
             owner->first);
  return memory;
}

/// One sample, a plane for each of the maps.
template <class T>
void convert(const T* from, const std::vector<Affine>& maps, std::span<float> out) {
  const std::size_t plane = out.size() / maps.size();
  float* to = out.data();
  for (const auto [scale, offset] : maps) {
    for (std::size_t i = 0; i < plane; ++i) to[i] = static_cast<float>(from[i]) * scale + offset;
    from += plane;
    to += plane;
  }
}

}  // namespace

Dataset::Dataset(std::string name, std::vector<std::int64_t> sample_shape, Values values,
                 std::vector<std::int32_t> labels, int classes)
    : Dataset(std::move(name), std::move(sample_shape), std::move(values),
              Targets{std::move(labels), {}, classes}) {}

Dataset::Dataset(std::string name, std::vector<std::int64_t> sample_shape, Values values,
                 Targets targets)
    : Dataset(std::move(name), std::move(sample_shape), own(std::move(values), std::move(targets)),
              targets.classes) {}  // a number stays what it is

namespace {

/// Samples that the labels or targets belong to, all of them checked.
std::size_t check_learned(const std::string& name, const Dataset::Borrowed& memory, int classes) {
  const std::size_t target_size = product_of(name, "target", memory.target_shape);
  const bool labeled = memory.targets.empty();
  require(labeled || memory.labels.empty(), ErrorKind::data,
          "data: {}: {} labels and {} float targets; give one of them", name, memory.labels.size(),
          memory.targets.size());
  const std::size_t learned = labeled ? memory.labels.size() : memory.targets.size();
  require(learned % target_size == 0, ErrorKind::data,
          "data: {}: {} {} for samples of {} each; they must match", name, learned,
          labeled ? "labels" : "targets", target_size);
  if (labeled)
    check_labels(name, memory.labels, target_size, classes);
  else
    check_targets(name, memory.targets, target_size, classes);
  return learned / target_size;
}

}  // namespace

Dataset::Dataset(std::string name, std::vector<std::int64_t> sample_shape, Borrowed memory,
                 int classes) {
  const std::size_t sample_size = product_of(name, "sample", sample_shape);
  const bool labeled = memory.targets.empty();
  const std::size_t samples = check_learned(name, memory, classes);
  const std::size_t count = std::visit([](const auto& v) { return v.size(); }, memory.values);
  std::size_t wanted = 0;
  require(!__builtin_mul_overflow(samples, sample_size, &wanted) && count == wanted,
          ErrorKind::data, "data: {}: {} values for {} {} of {} values each; they must match", name,
          count, samples,
          memory.target_shape.empty() ? (labeled ? "labels" : "targets") : "samples", sample_size);
  const std::size_t target_size = product_of(name, "target", memory.target_shape);
  size_ = samples;
  storage_ =
      std::make_shared<const Storage>(Storage{std::move(name), std::move(sample_shape), sample_size,
                                              target_size, std::move(memory), classes});
}

Dataset::Dataset(std::string name, std::vector<std::int64_t> sample_shape,
                 std::shared_ptr<const SampleSource> source, Targets targets) {
  const std::size_t sample_size = product_of(name, "sample", sample_shape);
  const int classes = targets.classes;
  Borrowed memory = own({}, std::move(targets));
  const std::size_t samples = check_learned(name, memory, classes);
  const std::vector<std::size_t> shards = source->shards();
  const std::size_t count = std::accumulate(shards.begin(), shards.end(), std::size_t{0});
  require(samples == count, ErrorKind::data,
          "data: {}: labels or targets for {} samples, the files have {}; they must match", name,
          samples, count);
  const std::size_t target_size = product_of(name, "target", memory.target_shape);
  size_ = samples;
  storage_ = std::make_shared<const Storage>(Storage{std::move(name), std::move(sample_shape),
                                                     sample_size, target_size, std::move(memory),
                                                     classes, std::move(source)});
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
  if (!storage_ || storage_->memory.labels.empty()) return {};
  return storage_->memory.labels.subspan(begin_ * target_size(), size_ * target_size());
}

std::span<const float> Dataset::targets() const {
  if (!storage_ || storage_->memory.targets.empty()) return {};
  return storage_->memory.targets.subspan(begin_ * target_size(), size_ * target_size());
}

const std::vector<std::int64_t>& Dataset::target_shape() const {
  static const std::vector<std::int64_t> none;
  return storage_ ? storage_->memory.target_shape : none;
}

std::size_t Dataset::target_size() const { return storage_ ? storage_->target_size : 1; }

bool Dataset::is_bytes() const { return storage_ && storage_->is_bytes(); }

std::variant<std::span<const std::uint8_t>, std::span<const float>> Dataset::values() const {
  if (!storage_) return {};
  require(!is_streamed(), ErrorKind::argument,
          "Dataset::values: the samples of \"{}\" are in files, not in memory; copy one at a time",
          name());
  require(storage_->selected.empty(), ErrorKind::argument,
          "Dataset::values: the samples of \"{}\" are selected, not one after the other in memory; "
          "copy one at a time",
          name());
  decltype(Borrowed::values) part;
  const std::size_t begin = begin_ * sample_size(), count = size_ * sample_size();
  std::visit([&](const auto& all) { part = all.subspan(begin, count); }, storage_->memory.values);
  return part;
}

void Dataset::copy(std::size_t index, std::span<std::byte> into) const {
  require(index < size_, ErrorKind::argument, "Dataset::copy: sample {} of \"{}\", which has {}",
          index, name(), size_);
  require(into.size() == sample_size() * storage_->value_bytes(), ErrorKind::argument,
          "Dataset::copy: room for {} bytes, a sample has {}", into.size(),
          sample_size() * storage_->value_bytes());
  const std::size_t place = storage_->place(begin_ + index);
  if (is_streamed()) return storage_->source->read(place, into);
  const auto take = [&]<class T>(std::span<const T> values) {
    std::memcpy(into.data(), values.data() + place * sample_size(), into.size());
  };
  std::visit(take, storage_->memory.values);
}

bool Dataset::is_streamed() const { return source() != nullptr; }

const SampleSource* Dataset::source() const { return storage_ ? storage_->source.get() : nullptr; }

std::vector<std::size_t> Dataset::shards() const {
  if (!is_streamed()) return {size_};
  std::vector<std::size_t> parts;
  std::size_t at = 0;
  for (const std::size_t count : storage_->source->shards()) {
    const std::size_t begin = std::max(storage_->samples_before(at), begin_);
    const std::size_t end = std::min(storage_->samples_before(at + count), begin_ + size_);
    if (begin < end) parts.push_back(end - begin);
    at += count;
  }
  return parts;
}

std::string Dataset::first_damage() const {
  if (!storage_) return {};
  const std::lock_guard guard(storage_->damage->lock);
  return storage_->damage->first;
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

Dataset Dataset::select(const std::vector<std::size_t>& indices) const {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    require(indices[i] < size_ && (i == 0 || indices[i - 1] < indices[i]), ErrorKind::argument,
            "Dataset::select: sample {} in place {} of \"{}\", which has {}; indices must ascend",
            indices[i], i, name(), size_);
  }
  if (indices.empty()) return slice(0, 0);
  using Kept = std::pair<std::shared_ptr<const Storage>, Targets>;
  const auto kept = std::make_shared<const Kept>(storage_, chosen_targets(*this, indices));
  Storage part{storage_->name,        storage_->sample_shape, storage_->sample_size,
               storage_->target_size, storage_->memory,       storage_->classes,
               storage_->source};
  part.memory.owner = kept;
  refer(part.memory, kept->second);
  for (const std::size_t index : indices) part.selected.push_back(storage_->place(begin_ + index));
  Dataset dataset;
  dataset.storage_ = std::make_shared<const Storage>(std::move(part));
  dataset.size_ = indices.size();
  return dataset;
}

Dataset Dataset::with_scaled_targets(const Normalization& normalization) const {
  const std::vector<float>&mean = normalization.target_mean, &stddev = normalization.target_stddev;
  require(
      classes() == 0 && mean.size() == target_size() && stddev.size() == target_size() &&
          std::ranges::all_of(stddev, [](float s) { return s > 0; }),
      ErrorKind::argument,
      "Dataset::with_scaled_targets: \"{}\" has {} classes and {} targets a sample; float targets, "
      "and one mean and one positive standard deviation for each are required",
      name(), classes(), target_size());
  if (!storage_) return *this;
  // Of all samples in storage, so that places stay.
  using Kept = std::pair<std::shared_ptr<const Storage>, Targets>;
  const auto kept = std::make_shared<const Kept>(
      storage_, Targets{scaled(normalization, storage_->memory.targets)});
  Storage changed{storage_->name,        storage_->sample_shape, storage_->sample_size,
                  storage_->target_size, storage_->memory,       0,
                  storage_->source,      storage_->selected};
  changed.memory.owner = kept;
  changed.memory.targets = std::get<std::vector<float>>(kept->second.values);
  Dataset dataset = *this;
  dataset.storage_ = std::make_shared<const Storage>(std::move(changed));
  return dataset;
}

void Dataset::gather(std::span<const std::size_t> indices, const Normalization& normalization,
                     std::span<float> out) const {
  gather(indices, normalization, out, {});
}

void Dataset::gather(std::span<const std::size_t> indices, const Normalization& normalization,
                     std::span<float> out, std::span<std::uint8_t> damaged) const {
  const std::size_t size = sample_size();
  require(out.size() == indices.size() * size, ErrorKind::argument,
          "Dataset::gather: room for {} values, {} samples of {} need {}", out.size(),
          indices.size(), size, indices.size() * size);
  if (indices.empty()) return;
  const auto last = std::max_element(indices.begin(), indices.end());
  require(*last < size_, ErrorKind::argument, "Dataset::gather: sample {} of \"{}\", which has {}",
          *last, name(), size_);
  const auto copy = [&]<class T>(std::vector<T> room) {
    const std::vector<Affine> maps = affine(normalization, storage_->channels(), unit_of<T>);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::span<float> to = out.subspan(i * size, size);
      try {
        convert(storage_->sample<T>(begin_ + indices[i], room), maps, to);
      } catch (const Error& error) {
        if (damaged.empty() || error.kind() != ErrorKind::data) throw;
        damaged[i] = 1;
        std::fill(to.begin(), to.end(), 0.0F);
      }
    }
  };
  is_bytes() ? copy(std::vector<std::uint8_t>()) : copy(std::vector<float>());
}

namespace {

constexpr std::size_t streamed_to_measure = 1024;

}  // namespace

Normalization Normalization::of_tokens(bool are_bytes) const {
  return {{0}, {are_bytes ? 1 / 255.0F : 1.0F}, {}, target_mean, target_stddev};
}

Normalization Dataset::measure() const {
  if (size_ == 0) return {};
  const std::size_t count = is_streamed() ? std::min(size_, streamed_to_measure) : size_;
  const std::size_t plane = sample_size() / storage_->channels();
  ChannelSums sums(storage_->channels());
  const auto add_all = [&]<class T>(std::vector<T> room) {
    for (std::size_t i = 0; i < count; ++i) {
      try {
        const T* sample = storage_->sample<T>(begin_ + i * size_ / count, room);
        if (sums.values == 0) sums.begin_at(sample, plane);
        sums.add(sample, plane);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data) throw;
      }
    }
  };
  is_bytes() ? add_all(std::vector<std::uint8_t>()) : add_all(std::vector<float>());
  return sums.normalization();
}

}  // namespace fast::data
