// Which weights an algorithm runs with, and whether it fits a schedule at all.
#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/mixing/spectrum.hpp>

#include "worker/startup.hpp"

namespace fast::worker {
namespace {

using algorithm::Declaration;
using algorithm::Mixing;

constexpr double tolerance = 1e-9;
constexpr std::int64_t most_rounds_checked = 64;

bool is_metropolis(const Topology& topology, WeightRule rule) {
  if (rule == WeightRule::metropolis) return true;
  return rule == WeightRule::automatic && !topology.has_given_weights() && topology.is_symmetric();
}

std::vector<MixingRow> matrix_of(const Topology& topology, const Weights& weights) {
  std::vector<MixingRow> rows;
  for (int worker = 0; worker < topology.workers(); ++worker) {
    rows.push_back(mixing_row(topology, worker, weights.rule, weights.lazy));
  }
  return rows;
}

bool all_one(const std::vector<double>& sums) {
  return std::all_of(sums.begin(), sums.end(),
                     [](double sum) { return std::abs(sum - 1) < tolerance; });
}

std::vector<double> row_sums(const std::vector<MixingRow>& rows) {
  std::vector<double> sums;
  for (const MixingRow& row : rows) {
    double sum = row.self;
    for (const double weight : row.weights) sum += weight;
    sums.push_back(sum);
  }
  return sums;
}

std::vector<double> column_sums(const std::vector<MixingRow>& rows) {
  std::vector<double> sums(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sums[i] += rows[i].self;
    for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
      sums[static_cast<std::size_t>(rows[i].neighbors[k])] += rows[i].weights[k];
    }
  }
  return sums;
}

/// W_ij; 0 when i does not read j.
double weight_of(const MixingRow& row, int j) {
  const auto found = std::lower_bound(row.neighbors.begin(), row.neighbors.end(), j);
  if (found == row.neighbors.end() || *found != j) return 0;
  return row.weights[static_cast<std::size_t>(found - row.neighbors.begin())];
}

bool is_symmetric(const std::vector<MixingRow>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
      const MixingRow& other = rows[static_cast<std::size_t>(rows[i].neighbors[k])];
      const double back = weight_of(other, static_cast<int>(i));
      if (std::abs(back - rows[i].weights[k]) > tolerance) return false;
    }
  }
  return true;
}

bool is_matching(const std::vector<MixingRow>& rows) {
  return is_symmetric(rows) && std::all_of(rows.begin(), rows.end(), [](const MixingRow& row) {
           return row.neighbors.empty() ||
                  (row.neighbors.size() == 1 && std::abs(row.weights[0] - 0.5) < tolerance);
         });
}

/// What a round's weights lack, "" when they fit.
std::string lacks(const Topology& topology, const Weights& weights, Mixing needed) {
  const bool symmetric_only = needed == Mixing::symmetric || needed == Mixing::positive;
  if ((symmetric_only || needed == Mixing::doubly_stochastic) &&
      is_metropolis(topology, weights.rule)) {
    return {};
  }
  const std::vector<MixingRow> rows = matrix_of(topology, weights);
  const bool doubly = all_one(row_sums(rows)) && all_one(column_sums(rows));
  switch (needed) {
    case Mixing::doubly_stochastic:
      return doubly ? "" : "weights whose rows and columns all sum to 1";
    case Mixing::symmetric:
    case Mixing::positive:
      return doubly && is_symmetric(rows) ? "" : "symmetric weights whose rows all sum to 1";
    case Mixing::column_stochastic:
      return all_one(column_sums(rows)) ? "" : "weights whose columns all sum to 1";
    case Mixing::matching:
      return is_matching(rows) ? "" : "pairs of workers that read each other with weight 1/2";
    default:
      return {};
  }
}

/// Makes the weights lazy, or refuses, unless all eigenvalues are above -1/3.
void require_positive(const Schedule& schedule, const Declaration& algorithm, Weights& weights) {
  if (schedule.workers() == 1) return;
  const Spectrum found = spectrum(schedule, weights.rule, weights.lazy);
  const double smallest = found.smallest_eigenvalue.value_or(-1);
  if (found.converged && smallest > -1.0 / 3 + tolerance) return;
  require(!algorithm.strict, ErrorKind::topology,
          "Worker: algorithm {} on {}: the smallest eigenvalue of the weights is {:.6f}, it must "
          "be above -1/3; use lazy weights",
          algorithm.name, schedule.name(), smallest);
  weights.lazy = true;
  weights.notice = fmt::format(
      "algorithm {} on {}: the smallest eigenvalue of the weights is {:.6f}, it must be above "
      "-1/3; lazy weights (I+W)/2 are used",
      algorithm.name, schedule.name(), smallest);
}

}  // namespace

Weights fitting_weights(const Schedule& schedule, const WorkerOptions& options,
                        const Declaration& algorithm) {
  require(!algorithm.needs_static_topology || schedule.is_static(), ErrorKind::topology,
          "Worker: algorithm {} on schedule {}, which changes from round to round; it needs a "
          "topology that stays",
          algorithm.name, schedule.name());
  require(
      !sends_sums(algorithm, options) || schedule.is_static(), ErrorKind::topology,
      "Worker: algorithm {} with a staleness above 0 on schedule {}, which changes from round to "
      "round; its running sums need edges that stay, take staleness 0 or such a topology",
      algorithm.name, schedule.name());
  Weights weights{options.weights, options.lazy_weights, {}};
  if (algorithm.mixing == Mixing::column_stochastic && weights.rule == WeightRule::automatic) {
    const bool given = schedule.at(0).has_given_weights();
    weights.rule = given ? WeightRule::given : WeightRule::uniform_columns;
  }
  if (algorithm.scope != algorithm::Scope::neighbors) return weights;
  const std::int64_t rounds = schedule.period() > 0
                                  ? std::min(schedule.period(), most_rounds_checked)
                                  : most_rounds_checked;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const std::string needed = lacks(schedule.at(round), weights, algorithm.mixing);
    if (needed.empty()) continue;
    require(algorithm.mixing == Mixing::doubly_stochastic, ErrorKind::topology,
            "Worker: algorithm {} on {} with {} weights: it needs {}; choose another topology, "
            "other weights or another algorithm",
            algorithm.name, schedule.name(), name(weights.rule), needed);
    weights.notice = fmt::format(
        "algorithm {} on {} with {} weights keeps the workers' mean only with {}; push_sum needs "
        "none of it",
        algorithm.name, schedule.name(), name(weights.rule), needed);
    break;
  }
  if (!algorithm.why_bounded.empty() && options.staleness == unbounded_staleness) {
    weights.notice +=
        fmt::format("{}algorithm {} at staleness inf: {}", weights.notice.empty() ? "" : "; ",
                    algorithm.name, algorithm.why_bounded);
  }
  if (algorithm.mixing == Mixing::positive) require_positive(schedule, algorithm, weights);
  return weights;
}

}  // namespace fast::worker
