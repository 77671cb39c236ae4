#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/sampler.hpp>
#include <numeric>
#include <span>

namespace fast::data {

RoundShare share_of(const std::optional<RoundShare>& given, int workers, int rank,
                    std::size_t batch_size) {
  if (!given) return {static_cast<std::size_t>(rank) * batch_size, batch_size};
  const std::size_t all = static_cast<std::size_t>(workers) * batch_size;
  require(
      given->batch_size > 0 && given->batch_size <= all && given->before <= all - given->batch_size,
      ErrorKind::argument,
      "sampler: worker {} takes {} samples of a round behind {} others; 1 or more of the {} "
      "samples of {} workers are required",
      rank, given->batch_size, given->before, all, workers);
  return *given;
}

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
  require(shard.own.empty() || !shard.share, ErrorKind::argument,
          "sampler: worker {} has samples of its own and a share of each round; choose one of them",
          shard.rank);
  share_ = share_of(shard.share, shard.workers, shard.rank, shard.batch_size);
  rounds_ = smallest / shard.batch_size;
}

std::vector<std::size_t> Sampler::order(std::size_t epoch) const {
  const std::size_t count = rounds_ * share_.batch_size;
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
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rounds_ * share_.before);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace fast::data
