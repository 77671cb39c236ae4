#include "worker/start/meetings.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fast::worker {
namespace {

constexpr double least_pivot = 1e-9;  ///< of a graph in one part; the ring of 1024: 2e-5

class Square {
 public:
  explicit Square(int size) : size_(static_cast<std::size_t>(size)), values_(size_ * size_, 0.0) {}
  std::size_t size() const { return size_; }
  double& at(std::size_t i, std::size_t j) { return values_[i * size_ + j]; }
  double at(std::size_t i, std::size_t j) const { return values_[i * size_ + j]; }

 private:
  std::size_t size_;
  std::vector<double> values_;
};

/// How often each pair meets in a round.
Square meetings_in_a_round(const Schedule& schedule) {
  const int workers = schedule.workers();
  const std::int64_t rounds = schedule.period_or(16 * workers);
  Square met(workers);
  for (std::int64_t t = 0; t < rounds; ++t) {
    const Topology topology = schedule.at(t);
    for (int i = 0; i < workers; ++i) {
      for (const int j : topology.in_neighbors(i))
        met.at(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) +=
            1 / static_cast<double>(rounds);
    }
  }
  return met;
}

/// The Laplacian and 1/N in every entry: its inverse is the pseudoinverse and the same.
Square shifted_laplacian(const Square& met) {
  const std::size_t n = met.size();
  Square laplacian(static_cast<int>(n));
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      laplacian.at(i, j) = 1 / static_cast<double>(n) - met.at(i, j);
      sum += met.at(i, j);
    }
    laplacian.at(i, i) += sum;
  }
  return laplacian;
}

/// In place, of a symmetric matrix whose eigenvalues are 0 or above. False: one is 0.
bool invert(Square& a) {
  const std::size_t n = a.size();
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = a.at(k, k);
    if (pivot < least_pivot) return false;
    a.at(k, k) = 1;
    for (std::size_t j = 0; j < n; ++j) a.at(k, j) /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a.at(i, k);
      a.at(i, k) = 0;
      for (std::size_t j = 0; j < n; ++j) a.at(i, j) -= factor * a.at(k, j);
    }
  }
  return true;
}

/// Of the pseudoinverse, by powers: of vectors whose entries sum to 0.
double largest_eigenvalue(const Square& inverse) {
  constexpr int most_powers = 2000;
  constexpr double close = 1e-12;
  const std::size_t n = inverse.size();
  std::vector<double> v(n), next(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(1.0 + static_cast<double>(i));
  double found = 0;
  for (int power = 0; power < most_powers; ++power) {
    double mean = 0, norm = 0;
    for (const double value : v) mean += value / static_cast<double>(n);
    for (double& value : v) value -= mean;
    for (const double value : v) norm += value * value;
    for (double& value : v) value /= std::sqrt(norm);
    double quotient = 0;
    for (std::size_t i = 0; i < n; ++i) {
      next[i] = 0;
      for (std::size_t j = 0; j < n; ++j) next[i] += inverse.at(i, j) * v[j];
      quotient += v[i] * next[i];
    }
    v.swap(next);
    if (std::abs(quotient - found) <= close * quotient) return quotient;
    found = quotient;
  }
  return found;
}

}  // namespace

algorithm::Meetings meetings_of(const Schedule& schedule) {
  if (schedule.workers() == 1) return {};
  const Square met = meetings_in_a_round(schedule);
  Square inverse = shifted_laplacian(met);
  if (!invert(inverse)) return {};
  algorithm::Meetings found{largest_eigenvalue(inverse), 0};
  for (std::size_t i = 0; i < met.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (met.at(i, j) == 0) continue;
      const double between = inverse.at(i, i) + inverse.at(j, j) - 2 * inverse.at(i, j);
      found.resistance = std::max(found.resistance, between / 2);
    }
  }
  return found;
}

}  // namespace fast::worker
