#include <fast/data/loader.hpp>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <numeric>

namespace fast::data {
namespace {

std::int64_t shift(int padding, Rng& rng) {
  return static_cast<std::int64_t>(rng.below(2 * static_cast<std::uint64_t>(padding) + 1)) -
         padding;
}

}  // namespace

void augment(std::span<float> image, const std::vector<std::int64_t>& shape,
             const Augmentation& augmentation, Rng& rng) {
  require(shape.size() == 3, ErrorKind::argument,
          "augment: samples with {} sides; images have channels, rows and columns", shape.size());
  require(augmentation.padding >= 0, ErrorKind::argument,
          "augment: padding {}; it must be 0 or more", augmentation.padding);
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

Batch Loader::fill(std::size_t epoch, std::size_t round, std::span<float> inputs,
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
  const std::size_t learned = batch_size_ * dataset_.target_size();
  (dataset_.targets().empty() ? labels_.resize(learned) : targets_.resize(learned));
  batch_ = fill(epoch, round, inputs_, labels_, targets_);
  return batch_;
}

}  // namespace fast::data
