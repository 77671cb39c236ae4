#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/window_sampler.hpp>
#include <numeric>
#include <span>

namespace fast::data {

/// The shards in the order of an epoch.
struct WindowSampler::Deal {
  std::vector<std::size_t> order;  ///< shards
  std::vector<std::size_t> begin;  ///< number of each one's first sample in that order
};

WindowSampler::WindowSampler(Windows windows) : windows_(std::move(windows)) {
  const Windows& w = windows_;
  require(w.workers > 0 && w.rank >= 0 && w.rank < w.workers, ErrorKind::argument,
          "window sampler: worker {} of {}; ranks go from 0 to the number of workers - 1", w.rank,
          w.workers);
  require(w.batch_size > 0 && w.window > 0, ErrorKind::argument,
          "window sampler: batch size {} and a window of {} samples; both must be at least 1",
          w.batch_size, w.window);
  std::size_t samples = 0;
  for (const std::size_t shard : w.shards) {
    first_.push_back(samples);
    samples += shard;
  }
  const auto workers = static_cast<std::size_t>(w.workers);
  const std::size_t block = samples / workers;
  require(
      w.batch_size <= block, ErrorKind::argument,
      "window sampler: batch size {} is larger than a worker's part ({} samples over {} workers: "
      "{} each); use a smaller batch size, fewer workers or more data",
      w.batch_size, samples, w.workers, block);
  share_ = share_of(w.share, w.workers, w.rank, w.batch_size);
  rounds_ = block / w.batch_size;
  begin_ = end_of(share_.before, block);
  end_ = end_of(share_.before + share_.batch_size, block);
}

/// Where the samples of workers end whose batches have `batches` samples in all, if even shares
/// have blocks of `block` samples. In two parts, as the product of all samples and a batch may not
/// fit a number.
std::size_t WindowSampler::end_of(std::size_t batches, std::size_t block) const {
  const std::size_t whole = batches / windows_.batch_size, rest = batches % windows_.batch_size;
  return whole * block + rest * block / windows_.batch_size;
}

WindowSampler::Deal WindowSampler::deal(std::size_t epoch) const {
  Deal deal;
  deal.order.resize(windows_.shards.size());
  std::iota(deal.order.begin(), deal.order.end(), std::size_t{0});
  Rng(mix_seed(windows_.seed, epoch)).shuffle(std::span(deal.order));
  std::size_t samples = 0;
  for (const std::size_t shard : deal.order) {
    deal.begin.push_back(samples);
    samples += windows_.shards[shard];
  }
  return deal;
}

const std::vector<std::size_t>& WindowSampler::window(Position position) {
  if (at_ == position) return shuffled_;
  const Deal order = deal(position.epoch);
  const std::size_t begin = begin_ + position.window * windows_.window;
  const std::size_t end = windows_.window < end_ - begin ? begin + windows_.window : end_;
  shuffled_.clear();
  auto next = std::upper_bound(order.begin.begin(), order.begin.end(), begin);
  for (std::size_t at = begin; at < end; ++at) {
    while (next != order.begin.end() && *next <= at) ++next;
    const auto turn = static_cast<std::size_t>(next - order.begin.begin()) - 1;
    shuffled_.push_back(first_[order.order[turn]] + at - order.begin[turn]);
  }
  const std::uint64_t seed =
      mix_seed(windows_.seed, position.epoch, 1 + static_cast<std::uint64_t>(windows_.rank));
  Rng(mix_seed(seed, position.window)).shuffle(std::span(shuffled_));
  at_ = position;
  return shuffled_;
}

std::vector<std::size_t> WindowSampler::batch(std::size_t epoch, std::size_t round) {
  std::vector<std::size_t> samples;
  samples.reserve(share_.batch_size);
  std::size_t at = round * share_.batch_size;
  const std::size_t end = at + share_.batch_size;
  while (at < end) {
    const std::vector<std::size_t>& shuffled = window({epoch, at / windows_.window});
    const std::size_t within = at % windows_.window;
    const std::size_t count = std::min(end - at, shuffled.size() - within);
    const auto from = shuffled.begin() + static_cast<std::ptrdiff_t>(within);
    samples.insert(samples.end(), from, from + static_cast<std::ptrdiff_t>(count));
    at += count;
  }
  return samples;
}

std::vector<std::size_t> WindowSampler::shards_of(std::size_t epoch) const {
  const Deal order = deal(epoch);
  std::vector<std::size_t> shards;
  for (std::size_t turn = 0; turn < order.order.size(); ++turn) {
    const std::size_t begin = order.begin[turn];
    const std::size_t end = begin + windows_.shards[order.order[turn]];
    if (begin < end_ && end > begin_ && begin < end) shards.push_back(order.order[turn]);
  }
  return shards;
}

}  // namespace fast::data
