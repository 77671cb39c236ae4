#include "scaling/pace.hpp"

#include <cmath>
#include <thread>

namespace fast::bench {

Pace::Pace(const PaceOptions& options, int rank, int ranks)
    : options_(options),
      is_slow_(rank == (options.slow_rank < 0 ? ranks - 1 : options.slow_rank)),
      rng_(mix_seed(options.seed, static_cast<std::uint64_t>(rank))) {}

/// A lognormal variable of mean m and deviation j·m: σ² = ln(1 + j²), μ = ln m - σ²/2.
Seconds Pace::next() {
  double step_ms = options_.step_ms * (is_slow_ ? options_.slow : 1);
  if (options_.jitter > 0) {
    const double variance = std::log1p(options_.jitter * options_.jitter);
    step_ms *= std::exp(std::sqrt(variance) * rng_.normal() - variance / 2);
  }
  return Seconds(step_ms / 1e3);
}

void Pace::step() { std::this_thread::sleep_for(next()); }

}  // namespace fast::bench
