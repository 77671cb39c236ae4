#include <fast/topology_tools/analysis.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/stencil.hpp>
#include <numeric>
#include <utility>

#include "mixing/rows.hpp"
#include "topology/stencil_graph.hpp"
#include "topology_tools/eigen.hpp"

namespace fast {

// Hops from any worker to any other.

namespace {

constexpr int most_exact_workers = 20'000;

std::int64_t rounds_of(const Schedule& schedule) {
  return schedule.period_or(looked_at_of_endless);
}

// Adjacency in one piece: the readers of i are to[first[i]] .. to[first[i + 1]].
struct Adjacency {
  std::vector<int> first = {0};
  std::vector<int> to;

  explicit Adjacency(const Schedule& schedule) {
    std::vector<Topology> rounds;
    for (std::int64_t t = 0; t < rounds_of(schedule); ++t) rounds.push_back(schedule.at(t));
    std::vector<int> all;
    for (int i = 0; i < schedule.workers(); ++i) {
      all.clear();
      for (const Topology& topology : rounds) {
        const std::vector<int> readers = topology.out_neighbors(i);
        all.insert(all.end(), readers.begin(), readers.end());
      }
      std::ranges::sort(all);
      all.erase(std::unique(all.begin(), all.end()), all.end());
      to.insert(to.end(), all.begin(), all.end());
      first.push_back(static_cast<int>(to.size()));
    }
  }
};

class Search {
 public:
  explicit Search(const Adjacency& edges)
      : edges_(edges), hops_(edges.first.size() - 1), queue_(edges.first.size() - 1) {}

  /// Hops from `start` to the farthest worker, and which that is.
  std::pair<int, int> farthest(int start) {
    std::ranges::fill(hops_, -1);
    std::size_t begin = 0, end = 0;
    hops_[start] = 0;
    queue_[end++] = start;
    while (begin < end) {
      const int i = queue_[begin++];
      for (int k = edges_.first[i]; k < edges_.first[i + 1]; ++k) {
        const int j = edges_.to[k];
        if (hops_[j] >= 0) continue;
        hops_[j] = hops_[i] + 1;
        queue_[end++] = j;
      }
    }
    const int last = queue_[end - 1];
    return {hops_[last], last};
  }

 private:
  const Adjacency& edges_;
  std::vector<int> hops_, queue_;
};

/// Whether every round is a stencil on a torus, so that all workers are alike.
bool closed_form_shape(const Schedule& schedule) {
  for (std::int64_t t = 0; t < rounds_of(schedule); ++t) {
    const Topology topology = schedule.at(t);
    const auto* stencil = dynamic_cast<const StencilGraph*>(&topology.graph());
    if (stencil == nullptr || !stencil->grid().periodic) return false;
  }
  return true;
}

/// Of the graph of all edges of a period (looked_at_of_endless rounds of an endless schedule): by
/// one search on a torus, where all workers see the same; by one a worker up to 20,000 of them;
/// else a bound from a few searches. The graph is strongly connected.
Figure diameter(const Schedule& schedule) {
  const Topology first = schedule.at(0);
  if (first.in_degree(0) == schedule.workers() - 1 && closed_form_shape(schedule)) {
    return {schedule.workers() > 1 ? 1.0 : 0.0, false};
  }
  const Adjacency edges(schedule);
  Search search(edges);
  auto [most, far] = search.farthest(0);
  if (closed_form_shape(schedule)) return {static_cast<double>(most), false};
  const bool exact = schedule.workers() <= most_exact_workers;
  for (int i = 1; exact && i < schedule.workers(); ++i) {
    most = std::max(most, search.farthest(i).first);
  }
  for (int sweep = 0; !exact && sweep < 8; ++sweep) {
    const auto [hops, next] = search.farthest(far);
    most = std::max(most, hops);
    far = next;
  }
  return {static_cast<double>(most), !exact};
}

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
  std::ranges::generate(x, [&] { return rng.normal(); });
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
  std::ranges::generate(x, [&] { return rng.normal(); });
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
  std::ranges::generate(x, [&] { return rng.normal(); });
  const double start = distance_from_mean(x);
  std::vector<double> curve = {1};
  for (int t = 0; t < rounds; ++t) {
    x = times(mixing_rows(schedule.at(t), rule, lazy), x);
    curve.push_back(start > 0 ? distance_from_mean(x) / start : 0);
  }
  return curve;
}

}  // namespace fast
