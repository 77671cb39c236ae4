#include <fast/mixing/weights.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/stencil.hpp>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "mixing/rows.hpp"
#include "topology/hosts.hpp"
#include "topology/stencil_graph.hpp"

namespace fast {
namespace {

WeightRule resolved(const Topology& topology, WeightRule rule) {
  if (rule == WeightRule::automatic) rule = topology.preferred_weights();
  if (rule != WeightRule::automatic) return rule;
  if (topology.has_given_weights()) return WeightRule::given;
  return topology.is_symmetric() ? WeightRule::metropolis : WeightRule::uniform_rows;
}

void set_metropolis(const Topology& topology, MixingRow& row) {
  require(topology.is_symmetric(), ErrorKind::topology,
          "mixing_row: {} is directed, metropolis weights need every edge both ways; choose "
          "uniform_rows, or uniform_columns with push_sum",
          topology.name());
  const auto degree = static_cast<int>(row.neighbors.size());
  for (const int j : row.neighbors) {
    row.weights.push_back(1.0 / (1 + std::max(degree, topology.in_degree(j))));
  }
  row.self = 1.0 - std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
}

void set_uniform_rows(MixingRow& row) {
  row.self = 1.0 / (1.0 + static_cast<double>(row.neighbors.size()));
  row.weights.assign(row.neighbors.size(), row.self);
}

void set_uniform_columns(const Topology& topology, int worker, MixingRow& row) {
  row.self = 1.0 / (1 + topology.out_degree(worker));
  for (const int j : row.neighbors) row.weights.push_back(1.0 / (1 + topology.out_degree(j)));
}

void set_given(const Topology& topology, int worker, MixingRow& row) {
  require(topology.has_given_weights(), ErrorKind::topology,
          "mixing_row: {} has no weights of its own; give some or choose metropolis, uniform_rows "
          "or uniform_columns",
          topology.name());
  row.self = topology.given_self_weight(worker);
  row.weights = topology.given_weights(worker);
  const InShards* shards = shards_of(topology);
  if (shards == nullptr || !shards->differ()) return;
  for (int shard = 0; shard < shards->shards(); ++shard)
    row.shards.push_back(shards->shard_weights(shard, worker));
}

}  // namespace

MixingRow mixing_row(const Topology& topology, int worker, WeightRule rule, bool lazy) {
  MixingRow row;
  row.neighbors = topology.in_neighbors(worker);
  row.weights.reserve(row.neighbors.size());
  switch (resolved(topology, rule)) {
    case WeightRule::metropolis:
      set_metropolis(topology, row);
      break;
    case WeightRule::uniform_columns:
      set_uniform_columns(topology, worker, row);
      break;
    case WeightRule::given:
      set_given(topology, worker, row);
      break;
    default:
      set_uniform_rows(row);
  }
  if (lazy || topology.prefers_lazy()) {
    row.self = (1 + row.self) / 2;
    for (double& weight : row.weights) weight /= 2;
    for (std::vector<double>& shard : row.shards)
      for (double& weight : shard) weight /= 2;
  }
  return row;
}

std::vector<double> mixing_matrix(const Topology& topology, WeightRule rule, bool lazy) {
  const auto n = static_cast<std::size_t>(topology.workers());
  std::vector<double> matrix(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    const MixingRow row = mixing_row(topology, static_cast<int>(i), rule, lazy);
    matrix[i * n + i] = row.self;
    for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
      matrix[i * n + static_cast<std::size_t>(row.neighbors[k])] = row.weights[k];
    }
  }
  return matrix;
}

namespace {

constexpr double sum_tolerance = 1e-9;

// The sides of the torus on which all rounds are stencils, or empty.
std::vector<int> common_torus(const std::vector<Topology>& rounds) {
  std::vector<int> sides;
  for (const Topology& topology : rounds) {
    const auto* graph = dynamic_cast<const StencilGraph*>(&topology.graph());
    const bool invariant = graph != nullptr && graph->grid().periodic;
    if (!invariant || (!sides.empty() && sides != graph->grid().sides)) return {};
    sides = graph->grid().sides;
  }
  return sides;
}

std::vector<int> place(int worker, const std::vector<int>& sides) {
  std::vector<int> result(sides.size());
  for (std::size_t d = sides.size(); d-- > 0; worker /= sides[d]) result[d] = worker % sides[d];
  return result;
}

// Matrices that are the same at every point of a torus have the Fourier modes as eigenvectors; all
// commute and are normal, so norms and products are those of eigenvalues.
class Symbol {
 public:
  Symbol(const MixingRow& row_of_0, const std::vector<int>& sides, int workers)
      : row_(row_of_0), sides_(sides) {
    const auto& weights = row_.weights;
    const bool equal =
        std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>()) == weights.end();
    complete_ = equal && static_cast<int>(weights.size()) == workers - 1;
    for (const int j : row_.neighbors) offsets_.push_back(place(j, sides));
  }

  std::complex<double> eigenvalue(const std::vector<int>& mode) const {
    if (complete_) return row_.self - row_.weights.front();
    std::complex<double> sum = row_.self;
    for (std::size_t k = 0; k < offsets_.size(); ++k) {
      double turns = 0;
      for (std::size_t d = 0; d < sides_.size(); ++d) {
        const std::int64_t steps = std::int64_t{mode[d]} * offsets_[k][d] % sides_[d];
        turns += static_cast<double>(steps) / sides_[d];
      }
      sum += std::polar(row_.weights[k], 2 * std::numbers::pi * turns);
    }
    return sum;
  }

 private:
  MixingRow row_;
  std::vector<int> sides_;
  std::vector<std::vector<int>> offsets_;
  bool complete_;  // with one weight for all neighbors: a closed form without the sum
};

Spectrum on_torus(const std::vector<Topology>& rounds, const std::vector<int>& sides,
                  WeightRule rule, bool lazy) {
  const int workers = rounds.front().workers();
  std::vector<Symbol> symbols;
  for (const Topology& topology : rounds) {
    symbols.emplace_back(mixing_row(topology, 0, rule, lazy), sides, workers);
  }
  double norm = 0, smallest = 1;
  bool real = true;
  for (int worker = 1; worker < workers; ++worker) {
    const std::vector<int> mode = place(worker, sides);
    std::complex<double> product = 1;
    for (const Symbol& symbol : symbols) product *= symbol.eigenvalue(mode);
    norm = std::max(norm, std::abs(product));
    smallest = std::min(smallest, product.real());
    real = real && std::abs(product.imag()) < rounding_of_norms;
  }
  Spectrum result{.gap = gap_of(norm, static_cast<std::int64_t>(rounds.size())),
                  .smallest_eigenvalue = {},
                  .doubly_stochastic = true,
                  .symmetric = real};
  if (real) result.smallest_eigenvalue = smallest;
  return result;
}

bool sums_to_one(const std::vector<double>& sums) {
  return std::all_of(sums.begin(), sums.end(),
                     [](double sum) { return std::abs(sum - 1) < sum_tolerance; });
}

bool is_product_doubly_stochastic(const std::vector<MixingRows>& rounds, int workers) {
  std::vector<double> rows(static_cast<std::size_t>(workers), 1.0), columns = rows;
  for (const MixingRows& matrix : rounds) rows = times(matrix, rows);
  for (std::size_t t = rounds.size(); t-- > 0;) columns = transposed_times(rounds[t], columns);
  return sums_to_one(rows) && sums_to_one(columns);
}

// How many rounds give the exact average of random values, and hence of any; 0: not all together.
std::int64_t rounds_until_exact(const std::vector<MixingRows>& rounds, int workers) {
  std::vector<double> x(static_cast<std::size_t>(workers));
  Rng rng(1);
  double mean = 0;
  for (double& value : x) {
    value = rng.uniform();
    mean += value / workers;
  }
  for (std::size_t t = 0; t < rounds.size(); ++t) {
    x = times(rounds[t], x);
    const bool exact = std::all_of(
        x.begin(), x.end(), [&](double value) { return std::abs(value - mean) < sum_tolerance; });
    if (exact) return static_cast<std::int64_t>(t) + 1;
  }
  return 0;
}

Spectrum of_matrices(const std::vector<MixingRows>& rounds, int workers) {
  Spectrum result;
  result.doubly_stochastic = is_product_doubly_stochastic(rounds, workers);
  result.symmetric = rounds.size() == 1 && is_symmetric(rounds.front(), rounding_of_norms);
  double norm = 0;
  if (result.symmetric && result.doubly_stochastic) {
    const auto apply = [&](std::span<const double> x, std::span<double> out) {
      const std::vector<double> y = times(rounds.front(), x);
      std::copy(y.begin(), y.end(), out.begin());
    };
    const ExtremeEigenvalues found = extreme_eigenvalues(apply, workers, true, rounding_of_norms);
    norm = std::max(std::abs(found.low), std::abs(found.high));
    result.smallest_eigenvalue = workers == 1 ? 1 : found.low;
    result.converged = found.converged;
  } else {
    const ExtremeEigenvalues found = squared_norm(rounds);
    norm = std::sqrt(std::max(0.0, found.high));
    result.converged = found.converged;
  }
  result.gap = gap_of(norm, static_cast<std::int64_t>(rounds.size()));
  if (result.gap == 1) result.exact_after = rounds_until_exact(rounds, workers);
  return result;
}

std::vector<Topology> rounds_of(const Schedule& schedule) {
  std::vector<Topology> rounds;
  for (std::int64_t t = 0; t < schedule.period(); ++t) rounds.push_back(schedule.at(t));
  return rounds;
}

// No product to take the norm of; the sums are those of round 0.
Spectrum endless(const Schedule& schedule, WeightRule rule, bool lazy) {
  const MixingRows first = mixing_rows(schedule.at(0), rule, lazy);
  const std::vector<double> ones(first.size(), 1.0);
  Spectrum result;
  result.gap = std::numeric_limits<double>::quiet_NaN();
  result.doubly_stochastic =
      sums_to_one(times(first, ones)) && sums_to_one(transposed_times(first, ones));
  return result;
}

}  // namespace

std::optional<Spectrum> closed_form_spectrum(const Schedule& schedule, WeightRule rule, bool lazy) {
  if (schedule.period() < 1) return {};
  const std::vector<Topology> rounds = rounds_of(schedule);
  const std::vector<int> sides = common_torus(rounds);
  if (sides.empty()) return {};
  return on_torus(rounds, sides, rule, lazy);
}

Spectrum spectrum(const Schedule& schedule, WeightRule rule, bool lazy) {
  if (schedule.period() < 1) return endless(schedule, rule, lazy);
  if (const auto closed = closed_form_spectrum(schedule, rule, lazy)) return *closed;
  std::vector<MixingRows> matrices;
  for (const Topology& topology : rounds_of(schedule)) {
    matrices.push_back(mixing_rows(topology, rule, lazy));
  }
  return of_matrices(matrices, schedule.workers());
}

}  // namespace fast
