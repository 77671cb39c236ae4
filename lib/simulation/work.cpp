#include <cmath>
#include <fast/core/random.hpp>
#include <fast/simulation/work.hpp>

namespace fast::simulation {
namespace {

constexpr double seconds_an_hour = 3600;

}  // namespace

double lognormal_factor(double sigma, std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  if (sigma == 0) return 1;
  return std::exp(sigma * Rng(mix_seed(seed, a, b)).normal() - sigma * sigma / 2);
}

double WorkTimes::of(int worker, std::int64_t round) const {
  const auto a = static_cast<std::uint64_t>(worker), b = static_cast<std::uint64_t>(round);
  const auto found = slow.find(worker);
  const double factor = found == slow.end() ? 1 : found->second;
  if (measured.empty()) return factor * seconds * lognormal_factor(jitter, seed, a, b);
  const std::vector<double>& steps = measured[a % measured.size()];
  return factor * steps[Rng(mix_seed(seed, a, b)).below(steps.size())];
}

double Failures::fails_after(int worker, std::int64_t round, double step_s) const {
  if (per_worker_hour <= 0) return -1;
  Rng rng(mix_seed(mix_seed(seed, 0xfa11), static_cast<std::uint64_t>(worker),
                   static_cast<std::uint64_t>(round)));
  const double mean_s = seconds_an_hour / per_worker_hour;
  const double fails_at = -mean_s * std::log1p(-rng.uniform());
  return fails_at < step_s ? fails_at / step_s : -1;
}

}  // namespace fast::simulation
