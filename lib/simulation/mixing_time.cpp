#include <algorithm>
#include <cmath>
#include <deque>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/simulation/plan.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "core/numbers.hpp"
#include "mixing/rows.hpp"

namespace fast::simulation {
namespace {

constexpr double negligible = 1e-4;
constexpr double consensus = 1e-3;
constexpr double settled = 1e-7;
constexpr double exact = 1e-12;
constexpr double most_products = 1e8;
constexpr double most_kept_products = 1e6;
constexpr double least_kept_rounds = 64;
constexpr double most_impulse_rounds = 1e7;
constexpr double products_to_make = 10;  // a row costs as much as so many products with it

using Vector = std::vector<double>;

// The matrices of a schedule.
class Matrices {
 public:
  Matrices(const Schedule& schedule, WeightRule rule, bool lazy)
      : schedule_(schedule), rule_(rule), lazy_(lazy), products_(products_of(make(0))) {}

  const MixingRows& at(std::int64_t round) {
    const std::int64_t period = schedule_.period();
    const std::int64_t key = period > 0 ? round % period : round;
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    if (static_cast<double>(known_.size()) >= kept_rounds()) known_.erase(known_.begin());
    return known_.emplace(key, make(key)).first->second;
  }
  /// Of one round with one vector.
  double products() const { return products_; }
  /// The same with the work to make the rows again, where they are not kept.
  double cost() const {
    return products_ * (static_cast<double>(phases()) <= kept_rounds() ? 1 : products_to_make);
  }
  std::int64_t phases() const { return schedule_.period_or(1); }

 private:
  double kept_rounds() const { return std::max(least_kept_rounds, most_kept_products / products_); }
  static double products_of(const MixingRows& rows) {
    double count = 0;
    for (const MixingRow& row : rows) count += 1 + static_cast<double>(row.weights.size());
    return count;
  }
  MixingRows make(std::int64_t round) const {
    return mixing_rows(schedule_.at(round), rule_, lazy_);
  }

  const Schedule& schedule_;
  WeightRule rule_;
  bool lazy_;
  std::map<std::int64_t, MixingRows> known_;
  double products_;
};

// x, and its last rounds: the values that neighbors see are late.
class Delayed {
 public:
  Delayed(Vector start, Vector before, int delay) {
    past_.assign(static_cast<std::size_t>(delay), std::move(before));
    past_.push_back(std::move(start));
  }
  void mix(const MixingRows& rows) {
    past_.push_back(times(rows, past_.back(), past_.front()));
    past_.pop_front();
  }
  const Vector& now() const { return past_.back(); }

 private:
  std::deque<Vector> past_;
};

// The same for relay_sum on a tree, when the counts of all messages are there.
class Relayed {
 public:
  Relayed(const Topology& tree, Vector start) : x_(std::move(start)) {
    std::map<std::pair<int, int>, std::size_t> known;
    for (int i = 0; i < tree.workers(); ++i) {
      for (const int j : tree.in_neighbors(i)) {
        known[{j, i}] = edges_.size();
        edges_.push_back({j, i, 0});
      }
    }
    for (Edge& edge : edges_) edge.back = known.at({edge.to, edge.from});
    messages_.assign(edges_.size(), 0);
  }
  void mix() {
    relay();
    const auto workers = static_cast<double>(x_.size());
    for (std::size_t e = 0; e < edges_.size(); ++e) at(edges_[e].to) += messages_[e];
    for (double& value : x_) value /= workers;
  }
  const Vector& now() const { return x_; }
  double products() const { return 2 * static_cast<double>(edges_.size() + x_.size()); }

 private:
  struct Edge {
    int from, to;
    std::size_t back;  // the edge the other way
  };
  double& at(int worker) { return x_[static_cast<std::size_t>(worker)]; }
  // Each message has the sender, and all that came to it from the others.
  void relay() {
    Vector all = x_;
    for (std::size_t e = 0; e < edges_.size(); ++e)
      all[static_cast<std::size_t>(edges_[e].to)] += messages_[e];
    Vector sent(messages_.size());
    for (std::size_t e = 0; e < edges_.size(); ++e)
      sent[e] = all[static_cast<std::size_t>(edges_[e].from)] - messages_[edges_[e].back];
    messages_ = std::move(sent);
  }

  Vector x_, messages_;
  std::vector<Edge> edges_;
};

double sum_of(const Vector& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double square_of(const Vector& x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }

double spread(const Vector& x) {
  const double mean = sum_of(x) / static_cast<double>(x.size());
  double sum = 0;
  for (const double value : x) sum += (value - mean) * (value - mean);
  return std::sqrt(sum);
}

// Where an impulse starts: at a worker, in a round of the period.
struct Start {
  int worker = 0;
  std::int64_t phase = 0;
};

// All pairs, or as many as the cost allows: rounds in even steps through the period, ascending, and
// workers in random order.
std::vector<Start> sampled_starts(int workers, std::int64_t phases, double cost_each) {
  std::vector<int> order(static_cast<std::size_t>(workers));
  std::iota(order.begin(), order.end(), 0);
  Rng(1).shuffle(std::span(order));
  const auto all = static_cast<std::int64_t>(workers) * phases;
  const auto most = static_cast<std::int64_t>(std::max(4.0, most_products / cost_each));
  std::int64_t count = std::min(all, most);
  if (count > phases) count -= count % phases;
  std::vector<Start> starts;
  for (std::int64_t k = 0; k < count; ++k) {
    starts.push_back({order[static_cast<std::size_t>(k % workers)], k * phases / count});
  }
  return starts;
}

// Means over starts, by rounds from the start.
class Impulses {
 public:
  Impulses(Matrices& matrices, int workers, int rounds, int delay)
      : matrices_(matrices),
        zero_(static_cast<std::size_t>(workers)),
        delay_(delay),
        moved_(static_cast<std::size_t>(rounds)),
        squares_(moved_) {}

  /// Those of one phase together, so that the rows of a round are made once.
  void add(std::span<const Start> starts, double weight) {
    std::vector<Delayed> columns;
    for (const Start& start : starts) columns.push_back(impulse_at(start.worker));
    for (std::size_t t = 0; t < moved_.size(); ++t) {
      const MixingRows& rows = matrices_.at(starts.front().phase + static_cast<std::int64_t>(t));
      for (Delayed& column : columns) {
        column.mix(rows);
        moved_[t] += weight * sum_of(column.now());
        squares_[t] += weight * square_of(column.now());
      }
    }
  }
  /// An impulse at that worker of a tree that relays.
  void add(const Topology& tree, int worker, double weight) {
    Vector unit = zero_;
    unit[static_cast<std::size_t>(worker)] = 1;
    Relayed column(tree, std::move(unit));
    for (std::size_t t = 0; t < moved_.size(); ++t) {
      column.mix();
      moved_[t] += weight * sum_of(column.now());
      squares_[t] += weight * square_of(column.now());
    }
  }
  double signal_to_noise(double gamma) const {
    double signal = 0, noise = 0, decay = 1;
    for (std::size_t t = 0; t < moved_.size(); ++t, decay *= gamma) {
      signal += decay * moved_[t] * moved_[t];
      noise += decay * squares_[t];
    }
    return signal / noise;
  }

 private:
  Delayed impulse_at(int worker) const {
    Vector unit = zero_;
    unit[static_cast<std::size_t>(worker)] = 1;
    return {std::move(unit), zero_, delay_};
  }

  Matrices& matrices_;
  Vector zero_;
  int delay_;
  Vector moved_, squares_;
};

int rounds_of_impulses(double gamma) {
  require(gamma > 0 && gamma < 1, ErrorKind::argument,
          "effective neighbors: a decay of {}; it is between 0 and 1", gamma);
  const double wanted = std::log(negligible) / std::log(gamma);
  require(wanted <= most_impulse_rounds, ErrorKind::argument,
          "effective neighbors: a decay of {} needs {:.3g} rounds, at most {:.3g} are computed; "
          "take a decay that is further from 1",
          gamma, wanted, most_impulse_rounds);
  return std::max(1, saturate<int>(wanted));
}

Vector random_start(int workers) {
  Rng rng(1);
  Vector start(static_cast<std::size_t>(workers));
  std::ranges::generate(start, [&] { return rng.normal(); });
  return start;
}

// Until the spread is 1/1000 of that at first. `mix(round)` returns what is left of it.
template <class Mix>
std::optional<double> rounds_of_spread(double products, const Mix& mix) {
  const int most = static_cast<int>(std::max(64.0, most_products / products / 2));
  Vector left = {1};
  while (static_cast<int>(left.size()) <= most && left.back() > settled)
    left.push_back(mix(static_cast<std::int64_t>(left.size()) - 1));
  const auto rounds = static_cast<double>(left.size() - 1);
  if (left.back() < exact) return rounds;
  // The last half shows the slowest mode.
  const std::size_t middle = left.size() / 2;
  const double rate = std::log(left.back() / left[middle]) / (rounds - static_cast<double>(middle));
  if (!(rate < -1e-9)) return std::nullopt;
  return std::ceil(std::log(consensus) / rate);
}

}  // namespace

double effective_neighbors(const Schedule& schedule, double gamma, int delay, WeightRule rule,
                           bool lazy) {
  const int rounds = rounds_of_impulses(gamma);
  Matrices matrices(schedule, rule, lazy);
  const std::vector<Start> starts =
      sampled_starts(schedule.workers(), matrices.phases(), matrices.cost() * rounds);
  Impulses impulses(matrices, schedule.workers(), rounds, delay);
  for (auto first = starts.begin(); first != starts.end();) {
    const auto end = std::find_if(first, starts.end(),
                                  [&](const Start& start) { return start.phase != first->phase; });
    impulses.add({first, end}, 1 / static_cast<double>(starts.size()));
    first = end;
  }
  return impulses.signal_to_noise(gamma);
}

std::optional<double> rounds_to_consensus(const Schedule& schedule, int delay, WeightRule rule,
                                          bool lazy) {
  if (delay == 0) {
    const std::optional<Figure> figure = analyze(schedule, rule, lazy).rounds_to_consensus;
    return figure ? std::optional(figure->value) : std::nullopt;
  }
  Matrices matrices(schedule, rule, lazy);
  const Vector start = random_start(schedule.workers());
  const double first = spread(start);
  if (first == 0) return 0;
  Delayed x(start, start, delay);
  return rounds_of_spread(matrices.products(), [&](std::int64_t round) {
    x.mix(matrices.at(round));
    return spread(x.now()) / first;
  });
}

RelayMixing relay_mixing(const Schedule& tree, double gamma) {
  const Topology topology = tree.at(0);
  const int workers = tree.workers();
  Relayed x(topology, random_start(workers));
  const double first = spread(x.now());
  RelayMixing mixing;
  if (first == 0) return {1, 0};
  mixing.rounds = rounds_of_spread(x.products(), [&](std::int64_t) {
    x.mix();
    return spread(x.now()) / first;
  });
  const int rounds = rounds_of_impulses(gamma);
  const std::vector<Start> starts = sampled_starts(workers, 1, x.products() * rounds);
  Matrices matrices(tree, WeightRule::automatic, false);
  Impulses impulses(matrices, workers, rounds, 0);
  for (const Start& start : starts)
    impulses.add(topology, start.worker, 1 / static_cast<double>(starts.size()));
  mixing.neighbors = impulses.signal_to_noise(gamma);
  return mixing;
}

}  // namespace fast::simulation
