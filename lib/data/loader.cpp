#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/loader.hpp>
#include <numeric>

namespace fast::data {

Loader::Loader(Dataset dataset, Normalization normalization, int workers, int rank,
               std::size_t batch_size, std::uint64_t seed, std::vector<std::size_t> own)
    : dataset_(std::move(dataset)),
      normalization_(std::move(normalization)),
      sampler_(Shard{dataset_.size(), workers, rank, batch_size, seed, std::move(own)}),
      batch_size_(batch_size),
      rounds_(sampler_->rounds()) {
  batch_.sample_shape = dataset_.sample_shape();
}

Loader::Loader(Dataset dataset, Normalization normalization, std::size_t batch_size)
    : dataset_(std::move(dataset)),
      normalization_(std::move(normalization)),
      batch_size_(batch_size),
      rounds_(batch_size == 0 ? 0 : (dataset_.size() + batch_size - 1) / batch_size),
      order_(dataset_.size()) {
  require(batch_size > 0, ErrorKind::argument, "loader: batch size 0; it must be at least 1");
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  batch_.sample_shape = dataset_.sample_shape();
}

void Loader::augment(const Augmentation& augmentation, std::uint64_t seed) {
  augmentation_ = augmentation;
  augmentation_seed_ = seed;
}

void Loader::own(std::vector<std::size_t> samples) {
  require(sampler_.has_value(), ErrorKind::argument,
          "loader: samples of its own for a loader that hands out all; make one for training");
  Shard shard = sampler_->shard();
  shard.own = std::move(samples);
  sampler_.emplace(std::move(shard));
  epoch_.reset();
}

const Batch& Loader::batch(std::size_t epoch, std::size_t round) {
  require(round < rounds_, ErrorKind::argument, "loader: batch {} of an epoch of {}", round,
          rounds_);
  if (sampler_ && epoch_ != epoch) {
    order_ = sampler_->order(epoch);
    epoch_ = epoch;
  }
  const std::size_t begin = round * batch_size_;
  const std::size_t count = std::min(batch_size_, order_.size() - begin);
  const auto indices = std::span<const std::size_t>(order_).subspan(begin, count);
  inputs_.resize(count * dataset_.sample_size());
  labels_.resize(count);
  dataset_.gather(indices, normalization_, inputs_);
  for (std::size_t i = 0; augmentation_ && i < count; ++i) {
    Rng rng(mix_seed(augmentation_seed_, epoch, indices[i]));
    const std::size_t size = dataset_.sample_size();
    data::augment(std::span(inputs_).subspan(i * size, size), dataset_.sample_shape(),
                  *augmentation_, rng);
  }
  const auto all = dataset_.labels();
  std::transform(indices.begin(), indices.end(), labels_.begin(),
                 [all](std::size_t index) { return all[index]; });
  batch_.inputs = inputs_;
  batch_.labels = labels_;
  return batch_;
}

}  // namespace fast::data
