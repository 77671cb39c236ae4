#include "mixing/rows.hpp"

#include <algorithm>
#include <cmath>

namespace fast {

MixingRows mixing_rows(const Topology& topology, WeightRule rule, bool lazy) {
  MixingRows rows;
  rows.reserve(static_cast<std::size_t>(topology.workers()));
  for (int i = 0; i < topology.workers(); ++i) rows.push_back(mixing_row(topology, i, rule, lazy));
  return rows;
}

std::vector<double> times(const MixingRows& rows, std::span<const double> x,
                          std::span<const double> seen) {
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    y[i] = rows[i].self * x[i];
    for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
      y[i] += rows[i].weights[k] * seen[static_cast<std::size_t>(rows[i].neighbors[k])];
    }
  }
  return y;
}

std::vector<double> times(const MixingRows& rows, std::span<const double> x) {
  return times(rows, x, x);
}

std::vector<double> transposed_times(const MixingRows& rows, std::span<const double> x) {
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    y[i] += rows[i].self * x[i];
    for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
      y[static_cast<std::size_t>(rows[i].neighbors[k])] += rows[i].weights[k] * x[i];
    }
  }
  return y;
}

double weight_of(const MixingRow& row, int other) {
  const auto found = std::lower_bound(row.neighbors.begin(), row.neighbors.end(), other);
  if (found == row.neighbors.end() || *found != other) return 0;
  return row.weights[static_cast<std::size_t>(found - row.neighbors.begin())];
}

bool is_symmetric(const MixingRows& rows, double tolerance) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
      const MixingRow& other = rows[static_cast<std::size_t>(rows[i].neighbors[k])];
      const double back = weight_of(other, static_cast<int>(i));
      if (std::abs(back - rows[i].weights[k]) > tolerance) return false;
    }
  }
  return true;
}

namespace {

void subtract_mean_of(std::span<const double> x, std::vector<double>& y) {
  double mean = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (double& value : y) value -= mean;
}

}  // namespace

// It is the largest eigenvalue of (∏W - J)ᵀ(∏W - J), where J is 11ᵀ/N.
ExtremeEigenvalues squared_norm(const std::vector<MixingRows>& rounds, std::size_t memory_doubles) {
  const auto apply = [&](std::span<const double> x, std::span<double> out) {
    std::vector<double> y(x.begin(), x.end());
    for (const MixingRows& rows : rounds) y = times(rows, y);
    subtract_mean_of(x, y);
    std::vector<double> z = y;
    for (std::size_t t = rounds.size(); t-- > 0;) z = transposed_times(rounds[t], z);
    subtract_mean_of(y, z);
    std::copy(z.begin(), z.end(), out.begin());
  };
  return extreme_eigenvalues(apply, static_cast<int>(rounds.front().size()), false,
                             rounding_of_norms * rounding_of_norms, memory_doubles);
}

double gap_of(double norm, std::int64_t rounds) {
  return norm < rounding_of_norms ? 1 : 1 - std::pow(norm, 1.0 / static_cast<double>(rounds));
}

}  // namespace fast
