#include <fast/data/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <limits>
#include <numeric>

#include "core/text.hpp"
#include "data/gamma_draw.hpp"

namespace fast::data {
namespace {

constexpr std::string_view dirichlet = "dirichlet:";

std::vector<double> dirichlet_draw(int classes, double alpha, Rng& rng) {
  std::vector<double> shares(static_cast<std::size_t>(classes));
  for (double& share : shares) share = log_gamma_draw(alpha, rng);
  const double largest = *std::max_element(shares.begin(), shares.end());
  for (double& share : shares) share = std::exp(share - largest);
  return shares;
}

using Samples = std::vector<std::vector<std::size_t>>;

/// The samples of each class, shuffled.
Samples by_class(std::span<const std::int32_t> labels, int classes, Rng& rng) {
  Samples samples(static_cast<std::size_t>(classes));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    samples[static_cast<std::size_t>(labels[i])].push_back(i);
  }
  for (auto& each : samples) rng.shuffle(std::span(each));
  return samples;
}

/// A class that has samples left, by `shares`, or by what is left when these have no say.
std::size_t draw_class(const std::vector<double>& shares, const Samples& left, Rng& rng) {
  std::vector<double> weights(shares.size());
  for (std::size_t c = 0; c < weights.size(); ++c) weights[c] = left[c].empty() ? 0 : shares[c];
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sum < std::numeric_limits<double>::min()) {
    for (std::size_t c = 0; c < weights.size(); ++c) {
      weights[c] = static_cast<double>(left[c].size());
    }
    sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  double at = rng.uniform() * sum;
  std::size_t chosen = weights.size();
  for (std::size_t c = 0; c < weights.size(); ++c) {
    if (weights[c] == 0) continue;
    chosen = c;
    if ((at -= weights[c]) < 0) break;
  }
  return chosen;
}

}  // namespace

std::string Sharding::text() const {
  return dirichlet_alpha ? fmt::format("{}{}", dirichlet, *dirichlet_alpha) : "even";
}

Sharding sharding_from(std::string_view text) {
  if (text == "even") return {};
  double alpha = 0;
  const bool good = text.starts_with(dirichlet) && reads(text.substr(dirichlet.size()), alpha);
  require(good && std::isfinite(alpha) && alpha > 0, ErrorKind::argument,
          "shards: \"{}\"; choose even or dirichlet:ALPHA with a positive number (dirichlet:0.1)",
          text);
  return {alpha};
}

std::vector<std::vector<std::size_t>> dirichlet_parts(std::span<const std::int32_t> labels,
                                                      int classes, int workers, double alpha,
                                                      std::uint64_t seed) {
  require(std::isfinite(alpha) && alpha > 0, ErrorKind::argument,
          "dirichlet parts: alpha {}; a positive number is required", alpha);
  require(workers > 0 && labels.size() >= static_cast<std::size_t>(workers), ErrorKind::argument,
          "dirichlet parts: {} samples for {} workers; each needs at least one, use fewer workers "
          "or more data",
          labels.size(), workers);
  Rng rng(mix_seed(seed, 0x5ead));
  Samples left = by_class(labels, classes, rng);
  std::vector<std::vector<double>> shares;
  for (int w = 0; w < workers; ++w) shares.push_back(dirichlet_draw(classes, alpha, rng));
  Samples parts(static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::size_t worker = i % parts.size();
    auto& chosen = left[draw_class(shares[worker], left, rng)];
    parts[worker].push_back(chosen.back());
    chosen.pop_back();
  }
  for (auto& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

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
