#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/spectrum.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <numeric>

#include "mixing/rows.hpp"
#include "topology_tools/diameter.hpp"
#include "topology_tools/eigen.hpp"

namespace fast {
namespace {

constexpr std::size_t most_dense_workers = 400;
constexpr double consensus = 1e-3;
constexpr int most_measured_rounds = 10'000;
constexpr double most_reads = 5e8;
constexpr double shrinking = 0.9;  // what is left after half of the measured rounds
constexpr double negligible = 1e-12;
constexpr std::size_t most_doubles = 6'000'000;

using Vector = std::vector<double>;

double mean(const Vector& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double distance_from_mean(const Vector& x) {
  const double center = mean(x);
  double sum = 0;
  for (const double value : x) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// ‖∏W - 11ᵀ/N‖ of many workers.
Figure norm_of_product(const std::vector<MixingRows>& rounds) {
  const ExtremeEigenvalues found = squared_norm(rounds, most_doubles);
  return {std::sqrt(std::max(0.0, found.high)), !found.converged};
}

void set_spectrum(const Schedule& schedule, WeightRule rule, bool lazy, Analysis& result) {
  if (schedule.period() < 1) return;
  if (const auto closed = closed_form_spectrum(schedule, rule, lazy)) {
    result.gap = Figure{closed->gap, false};
    if (closed->smallest_eigenvalue && schedule.is_static()) {
      result.smallest_eigenvalue = Figure{*closed->smallest_eigenvalue, false};
    }
    return;
  }
  std::vector<MixingRows> rounds;
  for (std::int64_t t = 0; t < schedule.period(); ++t) {
    rounds.push_back(mixing_rows(schedule.at(t), rule, lazy));
  }
  const bool dense = rounds.front().size() <= most_dense_workers;
  if (schedule.is_static() && result.check.symmetric && result.check.doubly_stochastic()) {
    const Extremes found = dense ? dense_extremes(rounds.front()) : sparse_extremes(rounds.front());
    result.smallest_eigenvalue = Figure{found.low, !found.low_converged};
    const double norm = std::max(std::abs(found.low), std::abs(found.high));
    const bool sure = found.high_converged || (found.low_converged && -found.low > found.high);
    result.gap = Figure{gap_of(norm, 1), !sure};
    return;
  }
  const Figure norm = dense ? Figure{dense_norm(rounds), false} : norm_of_product(rounds);
  result.gap = Figure{gap_of(norm.value, schedule.period()), norm.is_bound};
}

// Rounds of a schedule that averages exactly over a period.
int rounds_to_exact_average(const Schedule& schedule, WeightRule rule, bool lazy) {
  Vector x(static_cast<std::size_t>(schedule.workers()));
  Rng rng(1);
  std::generate(x.begin(), x.end(), [&] { return rng.normal(); });
  const double start = distance_from_mean(x), center = mean(x);
  int rounds = 0;
  while (rounds < schedule.period() &&
         (distance_from_mean(x) > 1e-9 * start || std::abs(mean(x) - center) > 1e-9 * start)) {
    x = times(mixing_rows(schedule.at(rounds++), rule, lazy), x);
  }
  return std::max(1, rounds);
}

// From a random start. If the disagreement shrinks too slowly to wait for: from its rate.
std::optional<double> measured_rounds(const Schedule& schedule, WeightRule rule, bool lazy,
                                      double edges_a_round) {
  Vector x(static_cast<std::size_t>(schedule.workers()));
  Rng rng(1);
  std::generate(x.begin(), x.end(), [&] { return rng.normal(); });
  const double start = distance_from_mean(x);
  if (start == 0) return 0;
  const double most = std::min<double>(most_measured_rounds, most_reads / edges_a_round);
  std::vector<double> left = {1};
  MixingRows rows;
  while (left.back() > consensus && static_cast<double>(left.size()) <= most) {
    const auto round = static_cast<std::int64_t>(left.size()) - 1;
    if (round == 0 || !schedule.is_static()) rows = mixing_rows(schedule.at(round), rule, lazy);
    x = times(rows, x);
    left.push_back(distance_from_mean(x) / start);
  }
  const std::size_t end = left.size() - 1, middle = end / 2;
  if (left[end] <= consensus) return static_cast<double>(end);
  if (!(left[end] < shrinking * left[middle])) return std::nullopt;
  const double rate = std::log(left[end] / left[middle]) / static_cast<double>(end - middle);
  return static_cast<double>(end) + std::ceil(std::log(consensus / left[end]) / rate);
}

void set_rounds(const Schedule& schedule, WeightRule rule, bool lazy, Analysis& result) {
  if (result.gap && !result.check.rows) return;
  if (result.gap && result.gap->value > negligible) {
    if (result.gap->value == 1) {
      const int rounds = rounds_to_exact_average(schedule, rule, lazy);
      result.rounds_to_consensus = Figure{static_cast<double>(rounds), result.gap->is_bound};
      return;
    }
    const double periods = std::ceil(std::log(consensus) / (static_cast<double>(schedule.period()) *
                                                            std::log1p(-result.gap->value)) -
                                     1e-9);
    result.rounds_to_consensus =
        Figure{periods * static_cast<double>(schedule.period()), result.gap->is_bound};
    return;
  }
  result.rounds_are_measured = true;
  const double edges = result.workers * (1 + result.average_edges);
  if (const auto rounds = measured_rounds(schedule, rule, lazy, edges)) {
    result.rounds_to_consensus = Figure{*rounds, true};
  }
}

void set_degrees(const Schedule& schedule, Analysis& result) {
  const std::int64_t rounds = schedule.period_or(looked_at_of_endless);
  const bool alike = closed_form_shape(schedule);
  result.least_degree = schedule.workers();
  double sum = 0, count = 0;
  for (std::int64_t t = 0; t < rounds; ++t) {
    const Topology topology = schedule.at(t);
    result.directed = result.directed || !topology.is_symmetric();
    const int last = alike ? 1 : topology.workers();
    for (int i = 0; i < last; ++i) {
      const int degree = topology.in_degree(i);
      result.least_degree = std::min(result.least_degree, degree);
      result.most_degree = std::max(result.most_degree, degree);
      sum += degree;
      ++count;
    }
  }
  result.average_edges = sum / count;
}

}  // namespace

Analysis analyze(const Schedule& schedule, WeightRule rule, bool lazy) {
  Analysis result;
  result.name = schedule.name();
  result.workers = schedule.workers();
  result.period = schedule.period();
  set_degrees(schedule, result);
  const double edges = result.average_edges * result.workers *
                       static_cast<double>(schedule.period_or(looked_at_of_endless));
  require(edges <= 2e8, ErrorKind::topology,
          "analyze: {} with {} workers reads about {:.1g} values, 2e8 can be analyzed; take fewer "
          "workers",
          schedule.name(), schedule.workers(), edges);
  result.check = check_mixing(schedule, rule, lazy);
  set_spectrum(schedule, rule, lazy, result);
  if (result.check.connected) result.diameter = diameter(schedule);
  set_rounds(schedule, rule, lazy, result);
  return result;
}

std::vector<double> consensus_curve(const Schedule& schedule, int rounds, WeightRule rule,
                                    bool lazy, std::uint64_t seed) {
  Vector x(static_cast<std::size_t>(schedule.workers()));
  Rng rng(seed);
  std::generate(x.begin(), x.end(), [&] { return rng.normal(); });
  const double start = distance_from_mean(x);
  std::vector<double> curve = {1};
  for (int t = 0; t < rounds; ++t) {
    x = times(mixing_rows(schedule.at(t), rule, lazy), x);
    curve.push_back(start > 0 ? distance_from_mean(x) / start : 0);
  }
  return curve;
}

}  // namespace fast
