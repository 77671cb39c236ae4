#include <fast/data/loader.hpp>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <numbers>
#include <numeric>

#include "data/gamma_draw.hpp"

namespace fast::data {
namespace {

std::int64_t shift(int padding, Rng& rng) {
  return static_cast<std::int64_t>(rng.below(2 * static_cast<std::uint64_t>(padding) + 1)) -
         padding;
}

/// An image, by planes.
struct Planes {
  std::span<float> values;
  std::int64_t count, rows, columns;

  std::size_t at(std::int64_t plane, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>((plane * rows + row) * columns + column);
  }
};

/// About its middle. What comes from outside is 0.
void rotate(const Planes& image, double degrees, Rng& rng) {
  const double angle = rng.uniform(-degrees, degrees) * std::numbers::pi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_r = static_cast<double>(image.rows - 1) / 2,
               middle_c = static_cast<double>(image.columns - 1) / 2;
  const std::vector<float> old(image.values.begin(), image.values.end());
  const auto value = [&](std::int64_t plane, std::int64_t r, std::int64_t c) {
    const bool inside = r >= 0 && r < image.rows && c >= 0 && c < image.columns;
    return inside ? double{old[image.at(plane, r, c)]} : 0.0;
  };
  for (std::int64_t r = 0; r < image.rows; ++r) {
    for (std::int64_t c = 0; c < image.columns; ++c) {
      const double down = static_cast<double>(r) - middle_r,
                   right = static_cast<double>(c) - middle_c;
      const double from_r = middle_r + cosine * down + sine * right,
                   from_c = middle_c - sine * down + cosine * right;
      const auto row = static_cast<std::int64_t>(std::floor(from_r)),
                 column = static_cast<std::int64_t>(std::floor(from_c));
      const double below = from_r - std::floor(from_r), beside = from_c - std::floor(from_c);
      for (std::int64_t plane = 0; plane < image.count; ++plane)
        image.values[image.at(plane, r, c)] =
            static_cast<float>((1 - below) * ((1 - beside) * value(plane, row, column) +
                                              beside * value(plane, row, column + 1)) +
                               below * ((1 - beside) * value(plane, row + 1, column) +
                                        beside * value(plane, row + 1, column + 1)));
    }
  }
}

void jitter_colors(const Planes& image, double most, Rng& rng) {
  const double contrast = rng.uniform(1 - most, 1 + most);
  const double saturation = rng.uniform(1 - most, 1 + most);
  const double brightness = rng.uniform(-most, most);
  for (std::int64_t r = 0; r < image.rows; ++r) {
    for (std::int64_t c = 0; c < image.columns; ++c) {
      double gray = 0;
      for (std::int64_t plane = 0; plane < image.count; ++plane)
        gray += double{image.values[image.at(plane, r, c)]} / static_cast<double>(image.count);
      for (std::int64_t plane = 0; plane < image.count; ++plane) {
        float& v = image.values[image.at(plane, r, c)];
        v = static_cast<float>(contrast * (gray + saturation * (double{v} - gray)) + brightness);
      }
    }
  }
}

/// A rectangle with sides of a ratio from .3 to 3.3. One that does not fit is drawn again, ten
/// times at most.
void erase(const Planes& image, Rng& rng) {
  constexpr double least = 0.02, most = 0.33, ratio = 3.3;
  constexpr int tries = 10;
  const auto area = static_cast<double>(image.rows * image.columns);
  for (int i = 0; i < tries; ++i) {
    const double size = area * rng.uniform(least, most);
    const double shape = std::exp(rng.uniform(std::log(1 / ratio), std::log(ratio)));
    const std::int64_t high = std::llround(std::sqrt(size * shape)),
                       wide = std::llround(std::sqrt(size / shape));
    if (high < 1 || wide < 1 || high >= image.rows || wide >= image.columns) continue;
    const auto top = static_cast<std::int64_t>(
                   rng.below(static_cast<std::uint64_t>(image.rows - high + 1))),
               left = static_cast<std::int64_t>(
                   rng.below(static_cast<std::uint64_t>(image.columns - wide + 1)));
    for (std::int64_t plane = 0; plane < image.count; ++plane)
      for (std::int64_t r = top; r < top + high; ++r)
        std::fill_n(image.values.begin() + static_cast<std::ptrdiff_t>(image.at(plane, r, left)),
                    wide, 0.0F);
    return;
  }
}

void check(const Augmentation& augmentation, const std::vector<std::int64_t>& shape) {
  require(shape.size() == 3, ErrorKind::argument,
          "augment: samples with {} sides; images have channels, rows and columns", shape.size());
  require(augmentation.padding >= 0, ErrorKind::argument,
          "augment: padding {}; it must be 0 or more", augmentation.padding);
  require(augmentation.rotation >= 0 && augmentation.rotation <= 180, ErrorKind::argument,
          "augment: a rotation of {} degrees; 0 to 180 are required", augmentation.rotation);
  require(augmentation.jitter >= 0 && augmentation.jitter <= 1, ErrorKind::argument,
          "augment: a jitter of {}; a number from 0 to 1 is required", augmentation.jitter);
  require(augmentation.erasing >= 0 && augmentation.erasing <= 1, ErrorKind::argument,
          "augment: an erasing of {}; a probability is required", augmentation.erasing);
}

}  // namespace

void augment(std::span<float> image, const std::vector<std::int64_t>& shape,
             const Augmentation& augmentation, Rng& rng) {
  check(augmentation, shape);
  const std::int64_t rows = shape[1], columns = shape[2];
  const std::int64_t down = shift(augmentation.padding, rng);
  const std::int64_t right = shift(augmentation.padding, rng);
  const bool flip = augmentation.flip && rng.below(2) == 1;
  const std::vector<float> old(image.begin(), image.end());
  for (std::int64_t plane = 0; plane < shape[0]; ++plane) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t from_r = r + down, from_c = (flip ? columns - 1 - c : c) + right;
        const bool inside = from_r >= 0 && from_r < rows && from_c >= 0 && from_c < columns;
        const auto at = [&](std::int64_t row, std::int64_t column) {
          return static_cast<std::size_t>((plane * rows + row) * columns + column);
        };
        image[at(r, c)] = inside ? old[at(from_r, from_c)] : 0.0F;
      }
    }
  }
  const Planes planes{image, shape[0], rows, columns};
  if (augmentation.rotation > 0) rotate(planes, augmentation.rotation, rng);
  if (augmentation.jitter > 0) jitter_colors(planes, augmentation.jitter, rng);
  if (augmentation.erasing > 0 && rng.uniform(0, 1) < augmentation.erasing) erase(planes, rng);
}

Loader::Loader(Dataset dataset, Normalization normalization, int workers, int rank,
               std::size_t batch_size, std::uint64_t seed, std::vector<std::size_t> own)
    : Loader(dataset, std::move(normalization),
             Sampler({dataset.size(), workers, rank, batch_size, seed, std::move(own)})) {}

Loader::Loader(Dataset dataset, Normalization normalization, Sampler sampler)
    : dataset_(std::move(dataset)),
      normalization_(std::move(normalization)),
      sampler_(std::move(sampler)),
      batch_size_(sampler_->batch_size()),
      rounds_(sampler_->rounds()) {
  require(sampler_->part().samples == dataset_.size(), ErrorKind::argument,
          "loader: a part of {} samples for a data set of {}; they must match",
          sampler_->part().samples, dataset_.size());
}

Loader::Loader(Dataset dataset, Normalization normalization, WindowSampler sampler)
    : dataset_(std::move(dataset)),
      normalization_(std::move(normalization)),
      windows_(std::move(sampler)),
      batch_size_(windows_->batch_size()),
      rounds_(windows_->rounds()) {
  const std::vector<std::size_t>& shards = windows_->windows().shards;
  const std::size_t samples = std::accumulate(shards.begin(), shards.end(), std::size_t{0});
  require(samples == dataset_.size(), ErrorKind::argument,
          "loader: shards of {} samples for a data set of {}; they must match", samples,
          dataset_.size());
}

Loader::Loader(Dataset form, Normalization normalization, std::shared_ptr<SampleStream> stream,
               std::shared_ptr<const StreamOrder> order)
    : dataset_(std::move(form)),
      normalization_(std::move(normalization)),
      stream_(std::move(stream)),
      stream_order_(std::move(order)),
      batch_size_(stream_order_->batch_size()),
      rounds_(stream_order_->rounds()) {}

Loader::Loader(Dataset dataset, Normalization normalization, std::size_t batch_size)
    : dataset_(std::move(dataset)),
      normalization_(std::move(normalization)),
      batch_size_(batch_size),
      rounds_(batch_size == 0 ? 0 : (dataset_.size() + batch_size - 1) / batch_size),
      order_(dataset_.size()) {
  require(batch_size > 0, ErrorKind::argument, "loader: batch size 0; it must be at least 1");
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

void Loader::augment(const Augmentation& augmentation, std::uint64_t seed) {
  augmentation_ = augmentation;
  augmentation_seed_ = seed;
}

void Loader::mix(double alpha, std::uint64_t seed) {
  require(std::isfinite(alpha) && alpha > 0, ErrorKind::argument,
          "loader: mixing by Beta(a, a) with a = {}; a positive number is required", alpha);
  require(dataset_.has_one_label(), ErrorKind::argument,
          "loader: mixing samples of \"{}\", which have no single class label", dataset_.name());
  mixing_ = alpha;
  mixing_seed_ = seed;
}

void Loader::own(std::vector<std::size_t> samples) {
  require(sampler_.has_value(), ErrorKind::argument,
          "loader: samples of its own for a loader that hands out all; make one for training");
  WorkerPart part = sampler_->part();
  part.own = std::move(samples);
  sampler_.emplace(std::move(part));
  epoch_.reset();
}

/// Threads of oneTBB's.
class Loader::Crew {
 public:
  // More than there are cores would make oneTBB print a warning.
  explicit Crew(int threads)
      : threads_(static_cast<std::size_t>(threads)),
        arena_(std::min(threads, oneapi::tbb::info::default_concurrency())) {}
  /// f(begin, end) for as many parts of 0 to count as there are threads.
  template <class F>
  void share(std::size_t count, const F& f) {
    arena_.execute([&] {
      oneapi::tbb::parallel_for(std::size_t{0}, threads_, [&](std::size_t part) {
        f(count * part / threads_, count * (part + 1) / threads_);
      });
    });
  }

 private:
  std::size_t threads_;
  oneapi::tbb::task_arena arena_;
};

void Loader::threads(int count) {
  require(count >= 1, ErrorKind::argument, "loader: {} threads; at least 1 is required", count);
  crew_ = count == 1 ? nullptr : std::make_shared<Crew>(count);
}

void Loader::make(std::size_t epoch, std::span<const std::size_t> samples, std::span<float> inputs,
                  std::span<std::uint8_t> damaged) const {
  dataset_.gather(samples, normalization_, inputs, damaged);
  const std::size_t size = dataset_.sample_size();
  for (std::size_t i = 0; augmentation_ && i < samples.size(); ++i) {
    Rng rng(mix_seed(augmentation_seed_, epoch, samples[i]));
    data::augment(inputs.subspan(i * size, size), dataset_.sample_shape(), *augmentation_, rng);
  }
}

std::span<const std::size_t> Loader::samples_of(std::size_t epoch, std::size_t round) {
  if (windows_) {
    order_ = windows_->batch(epoch, round);
    return order_;
  }
  if (sampler_ && epoch_ != epoch) {
    order_ = sampler_->order(epoch);
    epoch_ = epoch;
  }
  const std::size_t first = round * batch_size_;
  return std::span<const std::size_t>(order_).subspan(first,
                                                      std::min(batch_size_, order_.size() - first));
}

/// Moves the others together.
std::span<const std::size_t> Loader::leave_out_damaged(std::span<const std::size_t> samples,
                                                       std::span<float>& inputs) {
  const std::size_t size = dataset_.sample_size();
  good_.clear();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (damaged_[i] != 0) continue;
    if (good_.size() < i)
      std::copy_n(inputs.data() + i * size, size, inputs.data() + good_.size() * size);
    good_.push_back(samples[i]);
  }
  require(!good_.empty() || !trains(), ErrorKind::data,
          "loader: none of the {} samples of a batch can be read; the first error: {}",
          samples.size(), dataset_.first_damage());
  inputs = inputs.first(good_.size() * size);
  return good_;
}

namespace {

/// Blocks of `each` values, one a sample; returns what was written.
template <class T>
std::span<const T> pick(std::span<const T> from, std::span<const std::size_t> samples,
                        std::size_t each, std::span<T> to) {
  if (from.empty()) return {};
  require(to.size() >= samples.size() * each, ErrorKind::argument,
          "loader: room for {} labels or targets, {} samples have {}", to.size(), samples.size(),
          samples.size() * each);
  for (std::size_t i = 0; i < samples.size(); ++i)
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(samples[i] * each), each,
                to.begin() + static_cast<std::ptrdiff_t>(i * each));
  return to.first(samples.size() * each);
}

}  // namespace

/// A sample comes once: its number alone says how it is augmented.
Batch Loader::fill_from_stream(std::size_t epoch, std::size_t round, std::span<float> inputs,
                               std::span<std::int32_t> labels, std::span<float> targets) const {
  const auto [samples, numbers] =
      stream_->read(stream_order_->batch_begin(epoch, round), batch_size_);
  const std::size_t size = dataset_.sample_size(), each = dataset_.target_size();
  inputs = inputs.first(numbers.size() * size);
  if (numbers.empty()) return {inputs, {}, dataset_.sample_shape(), {}, dataset_.target_shape()};
  std::vector<std::size_t> all(numbers.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  samples.gather(all, normalization_, inputs);
  for (std::size_t i = 0; augmentation_ && i < all.size(); ++i) {
    Rng rng(mix_seed(augmentation_seed_, 0, numbers[i]));
    data::augment(inputs.subspan(i * size, size), dataset_.sample_shape(), *augmentation_, rng);
  }
  return {inputs, pick(samples.labels(), all, each, labels), dataset_.sample_shape(),
          pick(samples.targets(), all, each, targets), dataset_.target_shape()};
}

namespace {

/// Each sample with the one at the same place from the end. `labels` has room for both of each.
void mix_pairs(Batch& batch, double share, std::span<float> inputs,
               std::span<std::int32_t> labels) {
  const std::size_t count = batch.count();
  if (count == 0) return;
  const std::size_t size = batch.inputs.size() / count;
  const auto own = static_cast<float>(share), other = static_cast<float>(1 - share);
  for (std::size_t i = 0, j = count - 1; i < j; ++i, --j) {
    float *a = inputs.data() + i * size, *b = inputs.data() + j * size;
    for (std::size_t k = 0; k < size; ++k) {
      const float first = a[k], last = b[k];
      a[k] = own * first + other * last;
      b[k] = own * last + other * first;
    }
  }
  const std::span<std::int32_t> mixed = labels.subspan(count, count);
  std::ranges::reverse_copy(batch.labels, mixed.begin());
  batch.mixed_labels = mixed;
  batch.share = share;
}

}  // namespace

Batch Loader::fill(std::size_t epoch, std::size_t round, std::span<float> inputs,
                   std::span<std::int32_t> labels, std::span<float> targets) {
  Batch batch = fill_unmixed(epoch, round, inputs, labels, targets);
  if (!mixing_) return batch;
  require(labels.size() >= 2 * batch.count(), ErrorKind::argument,
          "loader: room for {} labels, {} mixed samples have two each", labels.size(),
          batch.count());
  Rng rng(mix_seed(mixing_seed_, epoch, round));
  const double a = log_gamma_draw(*mixing_, rng), b = log_gamma_draw(*mixing_, rng);
  mix_pairs(batch, 1 / (1 + std::exp(-std::fabs(a - b))), inputs, labels);
  return batch;
}

Batch Loader::fill_unmixed(std::size_t epoch, std::size_t round, std::span<float> inputs,
                           std::span<std::int32_t> labels, std::span<float> targets) {
  require(round < rounds_, ErrorKind::argument, "loader: batch {} of an epoch of {}", round,
          rounds_);
  if (stream_) return fill_from_stream(epoch, round, inputs, labels, targets);
  std::span<const std::size_t> samples = samples_of(epoch, round);
  const std::size_t count = samples.size(), size = dataset_.sample_size();
  inputs = inputs.first(count * size);
  const bool may_be_damaged = dataset_.is_streamed();
  damaged_.assign(may_be_damaged ? count : 0, 0);
  const auto part = [&](std::size_t begin, std::size_t end) {
    const auto damaged = std::span(damaged_);
    make(epoch, samples.subspan(begin, end - begin),
         inputs.subspan(begin * size, (end - begin) * size),
         may_be_damaged ? damaged.subspan(begin, end - begin) : damaged);
  };
  if (crew_)
    crew_->share(count, part);
  else
    part(0, count);
  if (may_be_damaged) samples = leave_out_damaged(samples, inputs);
  const std::size_t each = dataset_.target_size();
  return {inputs, pick(dataset_.labels(), samples, each, labels), dataset_.sample_shape(),
          pick(dataset_.targets(), samples, each, targets), dataset_.target_shape()};
}

const Batch& Loader::batch(std::size_t epoch, std::size_t round) {
  inputs_.resize(batch_size_ * dataset_.sample_size());
  dataset_.targets().empty() ? labels_.resize(room_for_labels())
                             : targets_.resize(batch_size_ * dataset_.target_size());
  batch_ = fill(epoch, round, inputs_, labels_, targets_);
  return batch_;
}

}  // namespace fast::data
