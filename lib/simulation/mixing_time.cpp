#include <algorithm>
#include <cmath>
#include <deque>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/simulation/mixing_time.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <map>
#include <numeric>
#include <vector>

namespace fast::simulation {
namespace {

constexpr double negligible = 1e-4;
constexpr double consensus = 1e-3;
constexpr double settled = 1e-7;
constexpr double exact = 1e-12;
constexpr double most_products = 1e8;
constexpr std::size_t most_kept_rounds = 64;

using Vector = std::vector<double>;
using Rows = std::vector<MixingRow>;

// The matrices of a schedule.
class Matrices {
 public:
  Matrices(const Schedule& schedule, WeightRule rule, bool lazy)
      : schedule_(schedule), rule_(rule), lazy_(lazy) {}

  const Rows& at(std::int64_t round) {
    const std::int64_t period = schedule_.period();
    const std::int64_t key = period > 0 ? round % period : round;
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    if (known_.size() >= most_kept_rounds) known_.erase(known_.begin());
    return known_.emplace(key, make(key)).first->second;
  }
  double products() {
    double count = 0;
    for (const MixingRow& row : at(0)) count += 1 + static_cast<double>(row.weights.size());
    return count;
  }
  std::int64_t phases() const {
    const std::int64_t period = schedule_.period();
    return period > 0 && period <= static_cast<std::int64_t>(most_kept_rounds) ? period : 1;
  }

 private:
  Rows make(std::int64_t round) const {
    const Topology topology = schedule_.at(round);
    Rows rows;
    for (int i = 0; i < topology.workers(); ++i)
      rows.push_back(mixing_row(topology, i, rule_, lazy_));
    return rows;
  }

  const Schedule& schedule_;
  WeightRule rule_;
  bool lazy_;
  std::map<std::int64_t, Rows> known_;
};

// x, and its last rounds: the values that neighbors see are late.
class Delayed {
 public:
  Delayed(Vector start, Vector before, MixingDelay delay) {
    past_.assign(static_cast<std::size_t>(delay.rounds), std::move(before));
    past_.push_back(std::move(start));
  }
  void mix(const Rows& rows) {
    const Vector& now = past_.back();
    const Vector& seen = past_.front();
    Vector next(now.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double sum = rows[i].self * now[i];
      for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
        sum += rows[i].weights[k] * seen[static_cast<std::size_t>(rows[i].neighbors[k])];
      }
      next[i] = sum;
    }
    past_.push_back(std::move(next));
    past_.pop_front();
  }
  const Vector& now() const { return past_.back(); }

 private:
  std::deque<Vector> past_;
};

double sum_of(const Vector& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double square_of(const Vector& x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }

double spread(const Vector& x) {
  const double mean = sum_of(x) / static_cast<double>(x.size());
  double sum = 0;
  for (const double value : x) sum += (value - mean) * (value - mean);
  return std::sqrt(sum);
}

std::vector<int> sampled_workers(int workers, double cost_each) {
  std::vector<int> all(static_cast<std::size_t>(workers));
  std::iota(all.begin(), all.end(), 0);
  const auto most = static_cast<std::size_t>(std::max(4.0, most_products / cost_each));
  if (all.size() <= most) return all;
  Rng(1).shuffle(std::span(all));
  all.resize(most);
  return all;
}

}  // namespace

double effective_neighbors(const Schedule& schedule, double gamma, MixingDelay delay,
                           WeightRule rule, bool lazy) {
  require(gamma > 0 && gamma < 1, ErrorKind::argument,
          "effective neighbors: a decay of {}; it is between 0 and 1", gamma);
  Matrices matrices(schedule, rule, lazy);
  const int rounds = std::max(1, static_cast<int>(std::log(negligible) / std::log(gamma)));
  const std::vector<int> starts = sampled_workers(schedule.workers(), matrices.products() * rounds);
  const auto count = static_cast<double>(starts.size());
  const Vector zero(static_cast<std::size_t>(schedule.workers()));
  std::vector<Delayed> columns;
  for (const int worker : starts) {
    Vector unit = zero;
    unit[static_cast<std::size_t>(worker)] = 1;
    columns.emplace_back(std::move(unit), zero, delay);
  }
  double signal = 0, noise = 0, decay = 1;
  for (int t = 0; t < rounds; ++t, decay *= gamma) {
    double moved = 0, squares = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].mix(matrices.at(t + static_cast<std::int64_t>(c) % matrices.phases()));
      moved += sum_of(columns[c].now()) / count;
      squares += square_of(columns[c].now()) / count;
    }
    signal += decay * moved * moved;
    noise += decay * squares;
  }
  return signal / noise;
}

std::optional<double> rounds_to_consensus(const Schedule& schedule, MixingDelay delay,
                                          WeightRule rule, bool lazy) {
  if (delay.rounds == 0) {
    const std::optional<Figure> figure = analyze(schedule, rule, lazy).rounds_to_consensus;
    return figure ? std::optional(figure->value) : std::nullopt;
  }
  Matrices matrices(schedule, rule, lazy);
  Rng rng(1);
  Vector start(static_cast<std::size_t>(schedule.workers()));
  std::generate(start.begin(), start.end(), [&] { return rng.normal(); });
  const double first = spread(start);
  if (first == 0) return 0;
  Delayed x(start, start, delay);
  const int most = static_cast<int>(std::max(64.0, most_products / matrices.products() / 2));
  Vector left = {1};
  while (static_cast<int>(left.size()) <= most && left.back() > settled) {
    x.mix(matrices.at(static_cast<std::int64_t>(left.size()) - 1));
    left.push_back(spread(x.now()) / first);
  }
  const auto rounds = static_cast<double>(left.size() - 1);
  if (left.back() < exact) return rounds;
  // The last half shows the slowest mode.
  const std::size_t middle = left.size() / 2;
  const double rate = std::log(left.back() / left[middle]) / (rounds - static_cast<double>(middle));
  if (!(rate < -1e-9)) return std::nullopt;
  return std::ceil(std::log(consensus) / rate);
}

}  // namespace fast::simulation
