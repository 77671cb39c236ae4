#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/sharding.hpp>
#include <limits>
#include <numeric>

#include "core/text.hpp"

namespace fast::data {
namespace {

constexpr std::string_view dirichlet = "dirichlet:";

/// The logarithm of a draw from Gamma(alpha, 1): for small alpha the draw itself underflows
/// (Marsaglia & Tsang 2000).
double log_gamma_draw(double alpha, Rng& rng) {
  const double d = alpha + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal(), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - rng.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) {
      return std::log(d * v) + std::log(1 - rng.uniform()) / alpha;
    }
  }
}

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

}  // namespace fast::data
