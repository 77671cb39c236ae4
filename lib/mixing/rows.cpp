#include "mixing/rows.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/random.hpp>
#include <numeric>
#include <vector>

namespace fast {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void subtract(Vector& x, double factor, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= factor * y[i];
}

double normalize(Vector& x) {
  const double length = std::sqrt(dot(x, x));
  for (double& value : x) value /= length;
  return length;
}

void orthogonalize(Vector& x, const std::vector<Vector>& basis) {
  for (int pass = 0; pass < 2; ++pass) {  // once leaves rounding errors, twice is enough
    for (const Vector& q : basis) subtract(x, dot(x, q), q);
  }
}

struct Tridiagonal {
  Vector diagonal, off;  // off[k] couples k and k + 1

  // Sturm's sequence: the number of eigenvalues below x.
  int count_below(double x) const {
    int count = 0;
    double pivot = 1;
    for (std::size_t k = 0; k < diagonal.size(); ++k) {
      const double coupling = k == 0 ? 0 : off[k - 1] * off[k - 1];
      pivot = diagonal[k] - x - coupling / pivot;
      if (pivot == 0) pivot = 1e-300;
      if (pivot < 0) ++count;
    }
    return count;
  }

  // The eigenvalue with `index` others below it, by bisection.
  double eigenvalue(int index) const {
    double bound = 0;
    for (std::size_t k = 0; k < diagonal.size(); ++k) {
      bound = std::max(bound, std::abs(diagonal[k]) + 2 * (k < off.size() ? off[k] : 0) +
                                  (k > 0 ? off[k - 1] : 0));
    }
    double low = -bound, high = bound;
    for (int step = 0; step < 80; ++step) {
      const double middle = low + (high - low) / 2;
      (count_below(middle) > index ? high : low) = middle;
    }
    return low + (high - low) / 2;
  }

  double smallest() const { return eigenvalue(0); }
  double largest() const { return eigenvalue(static_cast<int>(diagonal.size()) - 1); }
};

}  // namespace

ExtremeEigenvalues extreme_eigenvalues(const LinearOperator& a, int n, bool orthogonal_to_ones,
                                       double negligible, std::size_t memory_doubles) {
  const auto size = static_cast<std::size_t>(n);
  const std::size_t dimensions = size - (orthogonal_to_ones ? 1 : 0);
  if (dimensions == 0) return {0, 0, true};

  std::vector<Vector> basis;
  if (orthogonal_to_ones) basis.emplace_back(size, 1 / std::sqrt(static_cast<double>(n)));
  Vector q(size), next(size);
  Rng rng(1);
  std::generate(q.begin(), q.end(), [&] { return rng.normal(); });
  orthogonalize(q, basis);
  normalize(q);

  const std::size_t limit = std::min(dimensions, std::max<std::size_t>(20, memory_doubles / size));
  Tridiagonal t;
  double scale = 0;
  ExtremeEigenvalues found;
  for (std::size_t step = 1; step <= limit; ++step) {
    a(q, next);
    t.diagonal.push_back(dot(q, next));
    basis.push_back(std::move(q));
    orthogonalize(next, basis);
    q = next;
    const double beta = normalize(q);
    scale = std::max(scale, std::abs(t.diagonal.back()));
    const bool exhausted = step == dimensions || beta <= std::max(negligible, 1e-14 * scale);
    if (exhausted || step % 10 == 0 || step == limit) {
      const ExtremeEigenvalues before = found;
      found = {t.smallest(), t.largest(), exhausted};
      const double change = std::abs(found.low - before.low) + std::abs(found.high - before.high);
      found.converged = exhausted || (step > 10 && change < 1e-13 * (found.high - found.low));
      if (found.converged) break;
    }
    t.off.push_back(beta);
  }
  return found;
}

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
