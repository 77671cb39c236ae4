#include "data/files/split.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <numeric>
#include <utility>

namespace fast::data {
namespace {

constexpr std::uint64_t split_purpose = 0x5011;
constexpr std::uint64_t validation_purpose = 0x7a11;
constexpr double usual_test_share = 0.2;

/// Blocks of `each` values of the chosen samples.
template <class T>
std::vector<T> blocks_of(std::span<const T> values, const std::vector<std::size_t>& indices,
                         std::size_t each) {
  std::vector<T> chosen;
  if (values.empty()) return chosen;
  chosen.reserve(indices.size() * each);
  for (const std::size_t index : indices) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(index * each);
    chosen.insert(chosen.end(), from, from + static_cast<std::ptrdiff_t>(each));
  }
  return chosen;
}

/// The samples of each class; without one class label a sample, all of them.
std::vector<std::vector<std::size_t>> strata_of(const Dataset& samples) {
  const bool has_classes = samples.has_one_label();
  std::vector<std::vector<std::size_t>> strata(
      has_classes ? static_cast<std::size_t>(samples.classes()) : 1);
  for (std::size_t i = 0; i < samples.size(); ++i)
    strata[has_classes ? static_cast<std::size_t>(samples.labels()[i]) : 0].push_back(i);
  return strata;
}

/// How many of `total` each stratum gives: in proportion to its size, by largest remainders, and
/// all but one of its samples at most, as long as others have some to give.
std::vector<std::size_t> shares_of(const std::vector<std::vector<std::size_t>>& strata,
                                   std::size_t samples, std::size_t total) {
  std::vector<std::size_t> shares, by_remainder(strata.size());
  std::vector<double> remainders;
  std::size_t left = total;
  for (const auto& stratum : strata) {
    const double exact = static_cast<double>(total) * static_cast<double>(stratum.size()) /
                         static_cast<double>(samples);
    shares.push_back(static_cast<std::size_t>(exact));
    remainders.push_back(exact - std::floor(exact));
    left -= shares.back();
  }
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (const std::size_t spared : {std::size_t{1}, std::size_t{0}}) {
    for (bool any = true; any && left > 0;) {
      any = false;
      for (const std::size_t k : by_remainder) {
        if (left == 0 || shares[k] + spared >= strata[k].size()) continue;
        ++shares[k];
        --left;
        any = true;
      }
    }
  }
  return shares;
}

/// The first samples in that order; to stratify, those of each class. There is a place for each
/// sample.
std::vector<char> chosen_for_tests(const Dataset& samples, const std::vector<std::size_t>& order,
                                   std::size_t held_out, const LoadOptions& options) {
  require(!options.stratify || samples.has_one_label(), ErrorKind::argument,
          "--stratify: the samples of {} have no single class label; leave the option out",
          samples.name());
  std::vector<std::size_t> shares{held_out};
  if (options.stratify) shares = shares_of(strata_of(samples), samples.size(), held_out);
  std::vector<char> chosen(samples.size());
  for (const std::size_t i : order) {
    std::size_t& left =
        shares[options.stratify ? static_cast<std::size_t>(samples.labels()[i]) : 0];
    if (left == 0) continue;
    --left;
    chosen[i] = 1;
  }
  return chosen;
}

}  // namespace

Dataset first_of(const Dataset& samples, std::size_t limit) {
  return samples.slice(0, limit == 0 ? samples.size() : std::min(limit, samples.size()));
}

Targets chosen_targets(const Dataset& samples, const std::vector<std::size_t>& indices) {
  Targets targets{{}, samples.target_shape(), samples.classes()};
  if (samples.targets().empty())
    targets.values = blocks_of(samples.labels(), indices, samples.target_size());
  else
    targets.values = blocks_of(samples.targets(), indices, samples.target_size());
  return targets;
}

Dataset chosen_of(const Dataset& samples, const std::vector<std::size_t>& indices) {
  if (samples.is_streamed()) {
    std::vector<std::size_t> ascending = indices;
    std::sort(ascending.begin(), ascending.end());
    return samples.select(ascending);
  }
  Dataset::Values values;
  std::visit([&](const auto& all) { values = blocks_of(all, indices, samples.sample_size()); },
             samples.values());
  return {samples.name(), samples.sample_shape(), std::move(values),
          chosen_targets(samples, indices)};
}

Splits split_at_random(const Dataset& samples, const LoadOptions& options) {
  if (options.purpose != Purpose::training && !options.test_share)
    return {samples.slice(0, 0), first_of(samples, options.limit), {}};
  const double share = options.test_share.value_or(usual_test_share);
  require(std::isfinite(share) && share > 0 && share < 1, ErrorKind::argument,
          "data: {}: a test share of {}; a number between 0 and 1 is required", samples.name(),
          share);
  const auto held_out =
      static_cast<std::size_t>(std::llround(share * static_cast<double>(samples.size())));
  require(held_out > 0 && held_out < samples.size(), ErrorKind::argument,
          "data: {}: a share of {} of {} samples is {} samples to test; neither part may be empty, "
          "take another --test-share or more samples",
          samples.name(), share, samples.size(), held_out);
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng(mix_seed(options.split_seed, split_purpose)).shuffle(std::span(order));
  const std::vector<char> is_tested = chosen_for_tests(samples, order, held_out, options);
  std::vector<std::size_t> test, train;
  for (const std::size_t i : order) (is_tested[i] != 0 ? test : train).push_back(i);
  for (auto* part : {&train, &test}) {  // in their drawn order: a part of it is a fair sample
    if (options.limit > 0) part->resize(std::min(options.limit, part->size()));
  }
  return {chosen_of(samples, train), chosen_of(samples, test), {}};
}

HeldOut hold_out(const Dataset& samples, double share, std::uint64_t seed) {
  const auto total =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size())));
  std::vector<std::vector<std::size_t>> strata = strata_of(samples);
  const std::vector<std::size_t> shares = shares_of(strata, samples.size(), total);
  Rng random(mix_seed(seed, validation_purpose));
  std::vector<std::size_t> rest, held_out;
  for (std::size_t k = 0; k < strata.size(); ++k) {
    random.shuffle(std::span(strata[k]));
    const auto bound = strata[k].begin() + static_cast<std::ptrdiff_t>(shares[k]);
    held_out.insert(held_out.end(), strata[k].begin(), bound);
    rest.insert(rest.end(), bound, strata[k].end());
  }
  std::sort(rest.begin(), rest.end());
  std::sort(held_out.begin(), held_out.end());
  return {samples.select(rest), samples.select(held_out)};
}

}  // namespace fast::data
