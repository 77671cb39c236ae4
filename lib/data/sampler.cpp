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

Sampler::Sampler(const WorkerPart& part) : part_(part) {
  require(part.workers > 0 && part.rank >= 0 && part.rank < part.workers, ErrorKind::argument,
          "sampler: worker {} of {}; ranks go from 0 to the number of workers - 1", part.rank,
          part.workers);
  require(part.batch_size > 0, ErrorKind::argument, "sampler: batch size 0; it must be at least 1");
  const std::size_t smallest = part.samples / static_cast<std::size_t>(part.workers);
  require(smallest > 0, ErrorKind::argument,
          "sampler: {} samples for {} workers; each needs at least one, use fewer workers or more "
          "data",
          part.samples, part.workers);
  require(part.batch_size <= smallest, ErrorKind::argument,
          "sampler: batch size {} is larger than a worker's part ({} samples over {} workers: {} "
          "each); use a batch size of at most {}, fewer workers or more data",
          part.batch_size, part.samples, part.workers, smallest, smallest);
  require(part.own.empty() || part.own.size() >= smallest, ErrorKind::argument,
          "sampler: worker {} has {} samples of its own, {} are needed for equal rounds everywhere",
          part.rank, part.own.size(), smallest);
  require(part.own.empty() || !part.share, ErrorKind::argument,
          "sampler: worker {} has samples of its own and a share of each round; choose one of them",
          part.rank);
  share_ = share_of(part.share, part.workers, part.rank, part.batch_size);
  rounds_ = smallest / part.batch_size;
}

std::vector<std::size_t> Sampler::order(std::size_t epoch) const {
  const std::size_t count = rounds_ * share_.batch_size;
  if (!part_.own.empty()) {
    std::vector<std::size_t> own = part_.own;
    Rng(mix_seed(part_.seed, epoch, static_cast<std::uint64_t>(part_.rank)))
        .shuffle(std::span(own));
    own.resize(count);
    return own;
  }
  std::vector<std::size_t> all(part_.samples);
  std::iota(all.begin(), all.end(), std::size_t{0});
  Rng(mix_seed(part_.seed, epoch)).shuffle(std::span(all));
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rounds_ * share_.before);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace fast::data
