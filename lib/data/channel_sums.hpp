// Mean and standard deviation of each channel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fast/data/dataset.hpp>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

namespace fast::data {

/// What a stored value is multiplied by: bytes become numbers from 0 to 1.
template <class T>
constexpr float unit_of = std::is_same_v<T, std::uint8_t> ? 1.0F / 255.0F : 1.0F;

/// Sums over the values of each channel, less an origin. An origin near the values keeps the small
/// deviations of large values.
struct ChannelSums {
  std::vector<double> origins, sums, squares;
  double values = 0;  ///< of a channel

  explicit ChannelSums(std::size_t channels)
      : origins(channels), sums(channels), squares(channels) {}

  /// Of a sample with `plane` values in each channel: the first values become the origins. Before
  /// any sample is added.
  template <class T>
  void begin_at(const T* sample, std::size_t plane) {
    for (std::size_t c = 0; c < origins.size(); ++c) origins[c] = number(sample[c * plane]);
  }
  template <class T>
  void add(const T* sample, std::size_t plane) {
    for (std::size_t c = 0; c < sums.size(); ++c, sample += plane) add_channel(c, sample, plane);
    values += static_cast<double>(plane);
  }
  /// Adds sums over more values of the same channels, moved to these origins.
  void add(const ChannelSums& more) {
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const double apart = more.origins[c] - origins[c];
      sums[c] += more.sums[c] + more.values * apart;
      squares[c] += more.squares[c] + apart * (2 * more.sums[c] + more.values * apart);
    }
    values += more.values;
  }

  /// A constant channel gets the standard deviation 1.
  Normalization normalization() const {
    Normalization result{std::vector<float>(sums.size()), std::vector<float>(sums.size(), 1.0F)};
    const double count = std::max(values, 1.0);
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const double mean = sums[c] / count, variance = squares[c] / count - mean * mean;
      result.mean[c] = static_cast<float>(origins[c] + mean);
      // The sums are rounded by about 1e-16 of each square. A float holds no smaller deviation.
      constexpr double smallest = std::numeric_limits<float>::min();
      if (variance > std::max(1e-12 * mean * mean, smallest * smallest))
        result.stddev[c] = static_cast<float>(std::sqrt(variance));
    }
    return result;
  }

 private:
  template <class T>
  void add_channel(std::size_t c, const T* sample, std::size_t plane) {
    // Several sums side by side: each addition else waits for the one before it.
    constexpr std::size_t lanes = 8;
    const std::size_t whole = plane - plane % lanes;
    for (std::size_t i = whole; i < plane; ++i)
      add_value(number(sample[i]), c, sums[c], squares[c]);
    if (whole == 0) return;
    double sum[lanes] = {}, square[lanes] = {};
    for (std::size_t i = 0; i < whole; i += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane)
        add_value(number(sample[i + lane]), c, sum[lane], square[lane]);
    sums[c] += std::accumulate(sum, sum + lanes, 0.0);
    squares[c] += std::accumulate(square, square + lanes, 0.0);
  }
  void add_value(double value, std::size_t c, double& sum, double& square) const {
    const double apart = value - origins[c];
    sum += apart;
    square += apart * apart;
  }
  template <class T>
  static double number(T value) {
    return static_cast<double>(value) * static_cast<double>(unit_of<T>);
  }
};

}  // namespace fast::data
