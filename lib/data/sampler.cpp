#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/sampler.hpp>
#include <numeric>
#include <span>

namespace fast::data {

Sampler::Sampler(const Shard& shard) : shard_(shard) {
  require(shard.workers > 0 && shard.rank >= 0 && shard.rank < shard.workers, ErrorKind::argument,
          "sampler: worker {} of {}; ranks go from 0 to the number of workers - 1", shard.rank,
          shard.workers);
  require(shard.batch_size > 0, ErrorKind::argument,
          "sampler: batch size 0; it must be at least 1");
  const std::size_t smallest = shard.samples / static_cast<std::size_t>(shard.workers);
  require(smallest > 0, ErrorKind::argument,
          "sampler: {} samples for {} workers; each needs at least one, use fewer workers or more "
          "data",
          shard.samples, shard.workers);
  require(shard.batch_size <= smallest, ErrorKind::argument,
          "sampler: batch size {} is larger than a worker's shard ({} samples over {} workers: {} "
          "each); use a batch size of at most {}, fewer workers or more data",
          shard.batch_size, shard.samples, shard.workers, smallest, smallest);
  require(shard.own.empty() || shard.own.size() >= smallest, ErrorKind::argument,
          "sampler: worker {} has {} samples of its own, {} are needed for equal rounds everywhere",
          shard.rank, shard.own.size(), smallest);
  rounds_ = smallest / shard.batch_size;
}

std::vector<std::size_t> Sampler::order(std::size_t epoch) const {
  const std::size_t count = rounds_ * shard_.batch_size;
  if (!shard_.own.empty()) {
    std::vector<std::size_t> own = shard_.own;
    Rng(mix_seed(shard_.seed, epoch, static_cast<std::uint64_t>(shard_.rank)))
        .shuffle(std::span(own));
    own.resize(count);
    return own;
  }
  std::vector<std::size_t> all(shard_.samples);
  std::iota(all.begin(), all.end(), std::size_t{0});
  Rng(mix_seed(shard_.seed, epoch)).shuffle(std::span(all));
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(count) * shard_.rank;
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace fast::data
