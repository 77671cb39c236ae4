// Robust averaging: how much counts of a neighbor that stands apart from the others. A worker
// cannot know which neighbor is bad. It takes up to a third of the n values of a round, its own
// among them, for bad: f = floor(n / 3). A worker with one neighbor has f = 0. Neighbors that are
// absent leave f as it is; those that are certainly bad, as their values are not finite, take one
// from it each. Where f or fewer are left (a trimmed mean: fewer than 2 f), none of them counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fast {

/// What limits the neighbors' publications in a combination, each taken as one vector x_j.
/// Publications that are not finite, or too far away for a finite distance, are left out.
enum class Robust {
  none,
  /// ClippedGossip (He, Karimireddy, Jaggi 2022, arXiv 2202.01545): x_i + Σ_j W_ij Clip(x_j - x_i,
  /// τ_i), Clip(z, τ) = min(1, τ/‖z‖) z. τ_i is mixing::clip_radius(). Buffers have their own τ_i.
  clip,
  /// The new value of an element is the mean of the n values without the f largest and the f
  /// smallest (Yin et al. 2018, arXiv 1803.01498). The mixing weights do not count. A worker with
  /// two neighbors takes the median.
  trimmed_mean,
};

namespace mixing {

/// f, of a worker that has so many.
constexpr std::size_t tolerated(std::size_t neighbors) { return (neighbors + 1) / 3; }

/// τ_i: the (f+1)-th largest of the neighbors' distances ‖x_j - x_i‖, 0 if they are fewer. The
/// published program of ClippedGossip takes the second largest, which this is for 2 to 4 neighbors.
/// If at most f neighbors are bad, one of the f+1 furthest is not: τ_i is at most the distance of a
/// neighbor that is not bad, and a bad one pulls by at most W_ij times that distance.
double clip_radius(std::span<const double> distances, std::size_t tolerated);

/// min(1, τ/‖z‖), of a ‖z‖ that is finite.
constexpr double kept_share(double distance, double radius) {
  return distance > radius ? radius / distance : 1;
}

/// out[e] = the mean of own[e] and all values[j][e], without the `trim` largest and smallest, minus
/// own[e]. kept[j] grows by the number of elements e of values[j] that counted. Needs 2 trim at
/// most values.size().
void trimmed_differences(float* out, const float* own, std::span<const float* const> values,
                         std::size_t trim, std::size_t count, std::span<std::uint64_t> kept);
void trimmed_differences(double* out, const double* own, std::span<const double* const> values,
                         std::size_t trim, std::size_t count, std::span<std::uint64_t> kept);

}  // namespace mixing
}  // namespace fast
