#include <fast/topology/topology.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <numeric>
#include <utility>

#include "core/registry.hpp"

namespace fast {
namespace {

/// By WeightRule.
constexpr Named<WeightRule> rules[] = {{"metropolis", WeightRule::metropolis},
                                       {"uniform_rows", WeightRule::uniform_rows},
                                       {"uniform_columns", WeightRule::uniform_columns},
                                       {"given", WeightRule::given},
                                       {"automatic", WeightRule::automatic}};
constexpr Registry rules_by_name{rules, "weights: there is no rule \"{}\"; choose from {}"};

}  // namespace

std::string_view name(WeightRule rule) noexcept {
  return rules[static_cast<std::size_t>(rule)].name;
}

WeightRule weight_rule_by_name(std::string_view name) { return rules_by_name.at(name).value; }

namespace {

constexpr double sum_tolerance = 1e-9;

using Lists = std::vector<std::vector<int>>;

class EdgeLists : public Graph {
 public:
  explicit EdgeLists(Lists in) : in_(std::move(in)), out_(in_.size()) {
    for (std::size_t i = 0; i < in_.size(); ++i) {
      for (const int j : in_[i]) out_[j].push_back(static_cast<int>(i));
    }
    symmetric_ = in_ == out_;
  }

  int workers() const override { return static_cast<int>(in_.size()); }
  std::vector<int> in_neighbors(int worker) const override { return in_[worker]; }
  std::vector<int> out_neighbors(int worker) const override { return out_[worker]; }
  int in_degree(int worker) const override { return static_cast<int>(in_[worker].size()); }
  int out_degree(int worker) const override { return static_cast<int>(out_[worker].size()); }
  bool is_symmetric() const override { return symmetric_; }

 private:
  Lists in_, out_;
  bool symmetric_;
};

class WeightedEdgeLists final : public EdgeLists, public GraphWeights {
 public:
  WeightedEdgeLists(Lists in, std::vector<std::vector<double>> weights, std::vector<double> self)
      : EdgeLists(std::move(in)), rows_(std::move(weights)), self_(std::move(self)) {}

  std::vector<double> in_weights(int worker) const override { return rows_[worker]; }
  double self_weight(int worker) const override { return self_[worker]; }

 private:
  std::vector<std::vector<double>> rows_;
  std::vector<double> self_;
};

void check_list(const std::string& name, int worker, const std::vector<int>& sorted, int workers) {
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    const int j = sorted[k];
    require(j >= 0 && j < workers, ErrorKind::topology,
            "Topology {}: worker {} reads worker {}, there are {} (0..{}); leave that neighbor out "
            "or add its list",
            name, worker, j, workers, workers - 1);
    require(j != worker, ErrorKind::topology,
            "Topology {}: worker {} names itself as a neighbor; leave it out, a worker's own value "
            "is always part of its average",
            name, worker);
    require(k == 0 || sorted[k - 1] != j, ErrorKind::topology,
            "Topology {}: worker {} names neighbor {} twice; name it once", name, worker, j);
  }
}

Lists checked(const std::string& name, Lists in) {
  require(!in.empty(), ErrorKind::topology, "Topology {}: no workers; at least 1 is required",
          name);
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::ranges::sort(in[i]);
    check_list(name, static_cast<int>(i), in[i], static_cast<int>(in.size()));
  }
  return in;
}

std::vector<double> along_sorted(const std::vector<int>& neighbors,
                                 const std::vector<double>& weights) {
  std::vector<std::size_t> order(neighbors.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order,
                    [&](std::size_t a, std::size_t b) { return neighbors[a] < neighbors[b]; });
  std::vector<double> sorted;
  for (const std::size_t k : order) sorted.push_back(weights[k]);
  return sorted;
}

void check_sums(const std::string& name, const Lists& in,
                const std::vector<std::vector<double>>& weights, const std::vector<double>& self) {
  const std::size_t n = self.size();
  std::vector<double> rows = self, columns = self;
  const auto check_weight = [&](std::size_t i, std::size_t j, double weight) {
    require(std::isfinite(weight) && weight >= 0, ErrorKind::topology,
            "Topology {}: worker {} gives worker {} the weight {}; weights are finite and not "
            "negative, leave the edge out to give none",
            name, i, j, weight);
  };
  for (std::size_t i = 0; i < n; ++i) {
    check_weight(i, i, self[i]);
    for (std::size_t k = 0; k < in[i].size(); ++k) {
      const double weight = weights[i][k];
      check_weight(i, in[i][k], weight);
      rows[i] += weight;
      columns[in[i][k]] += weight;
    }
  }
  const auto off = [](double sum) { return std::abs(sum - 1) > sum_tolerance; };
  const auto row = std::ranges::find_if(rows, off);
  if (row == rows.end() || std::ranges::none_of(columns, off)) return;
  fail(ErrorKind::topology,
       "Topology {}: worker {}'s weights, its own included, sum to {:.6g}, required 1 (or every "
       "column 1, for push-sum); change one of them by {:.6g} or leave all self weights out",
       name, row - rows.begin(), *row, 1 - *row);
}

}  // namespace

int Graph::in_degree(int worker) const { return static_cast<int>(in_neighbors(worker).size()); }
int Graph::out_degree(int worker) const { return static_cast<int>(out_neighbors(worker).size()); }

Topology::Topology(std::string name, std::shared_ptr<const Graph> graph)
    : name_(std::move(name)), graph_(std::move(graph)) {
  given_ = dynamic_cast<const GraphWeights*>(graph_.get());
}

Topology::Topology(std::string name, Lists in_neighbors)
    : name_(std::move(name)),
      graph_(std::make_shared<EdgeLists>(checked(name_, std::move(in_neighbors)))) {}

Topology::Topology(std::string name, Lists in_neighbors, std::vector<std::vector<double>> weights,
                   std::vector<double> self_weights)
    : name_(std::move(name)) {
  const std::size_t n = in_neighbors.size();
  require(weights.size() == n && (self_weights.empty() || self_weights.size() == n),
          ErrorKind::topology,
          "Topology {}: {} workers, weights for {} and self weights for {}; give each worker its "
          "own (or no self weights at all)",
          name_, n, weights.size(), self_weights.size());
  for (std::size_t i = 0; i < n; ++i) {
    require(weights[i].size() == in_neighbors[i].size(), ErrorKind::topology,
            "Topology {}: worker {} has {} neighbors and {} weights; give one weight a neighbor",
            name_, i, in_neighbors[i].size(), weights[i].size());
    weights[i] = along_sorted(in_neighbors[i], weights[i]);
  }
  in_neighbors = checked(name_, std::move(in_neighbors));

  const bool rest = self_weights.empty();
  self_weights.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double sum = std::accumulate(weights[i].begin(), weights[i].end(), 0.0);
    require(!rest || !(sum > 1 + sum_tolerance), ErrorKind::topology,
            "Topology {}: worker {}'s weights sum to {:.6g}, at most 1 leaves a weight for its own "
            "value; lower them by {:.6g} or scale them by {:.6g}",
            name_, i, sum, sum - 1, 1 / sum);
    if (rest) self_weights[i] = std::max(0.0, 1 - sum);
  }
  check_sums(name_, in_neighbors, weights, self_weights);
  auto graph = std::make_shared<WeightedEdgeLists>(std::move(in_neighbors), std::move(weights),
                                                   std::move(self_weights));
  given_ = graph.get();
  graph_ = std::move(graph);
}

Topology Topology::with_weights(WeightRule preferred, bool lazy) const {
  Topology changed = *this;
  changed.preferred_ = preferred;
  changed.lazy_ = lazy;
  return changed;
}

void Topology::check_worker(int worker) const {
  require(worker >= 0 && worker < workers(), ErrorKind::argument,
          "Topology {}: asked for worker {}, there are {} (0..{})", name_, worker, workers(),
          workers() - 1);
}

std::vector<int> Topology::in_neighbors(int worker) const {
  check_worker(worker);
  return graph_->in_neighbors(worker);
}

std::vector<int> Topology::out_neighbors(int worker) const {
  check_worker(worker);
  return graph_->out_neighbors(worker);
}

int Topology::in_degree(int worker) const {
  check_worker(worker);
  return graph_->in_degree(worker);
}

int Topology::out_degree(int worker) const {
  check_worker(worker);
  return graph_->out_degree(worker);
}

std::vector<double> Topology::given_weights(int worker) const {
  check_worker(worker);
  return given_ ? given_->in_weights(worker) : std::vector<double>{};
}

double Topology::given_self_weight(int worker) const {
  check_worker(worker);
  return given_ ? given_->self_weight(worker) : 1;
}

Schedule::Schedule(Topology topology)
    : name_(topology.name()), workers_(topology.workers()), period_(1) {
  at_round_ = [topology = std::move(topology)](std::int64_t) { return topology; };
}

Schedule::Schedule(std::string name, std::vector<Topology> rounds)
    : name_(std::move(name)), workers_(0), period_(static_cast<std::int64_t>(rounds.size())) {
  require(!rounds.empty(), ErrorKind::topology, "Schedule {}: no rounds; at least 1 is required",
          name_);
  workers_ = rounds.front().workers();
  for (const Topology& topology : rounds) {
    require(topology.workers() == workers_, ErrorKind::topology,
            "Schedule {}: {} has {} workers, {} has {}; all rounds need the same number", name_,
            rounds.front().name(), workers_, topology.name(), topology.workers());
  }
  at_round_ = [rounds = std::move(rounds)](std::int64_t round) {
    return rounds[static_cast<std::size_t>(round) % rounds.size()];
  };
}

Schedule::Schedule(std::string name, int workers, std::int64_t period, AtRound at_round)
    : name_(std::move(name)), workers_(workers), period_(period), at_round_(std::move(at_round)) {}

Topology Schedule::at(std::int64_t round) const {
  require(round >= 0, ErrorKind::argument, "Schedule {}: asked for round {}, rounds begin at 0",
          name_, round);
  return at_round_(round);
}

Schedule Schedule::with_weights(WeightRule preferred, bool lazy) const {
  if (is_static()) return at(0).with_weights(preferred, lazy);
  return {name_, workers_, period_, [inner = at_round_, preferred, lazy](std::int64_t round) {
            return inner(round).with_weights(preferred, lazy);
          }};
}

TopologyRule::TopologyRule(std::string name, Make make, int workers)
    : name_(std::move(name)), make_(std::move(make)), workers_(workers) {}

TopologyRule::TopologyRule(Topology topology) : TopologyRule(Schedule(std::move(topology))) {}

TopologyRule::TopologyRule(Schedule schedule)
    : name_(schedule.name()), workers_(schedule.workers()) {
  make_ = [schedule = std::move(schedule)](int) { return schedule; };
}

Schedule TopologyRule::make(int workers) const {
  require(workers >= 1, ErrorKind::topology,
          "TopologyRule {}: asked for {} workers, at least 1 is required", name_, workers);
  Schedule schedule = make_(workers);
  require(schedule.workers() == workers, ErrorKind::topology,
          "TopologyRule {}: made for {} workers, this run has {}; start {} workers or choose "
          "another topology",
          name_, schedule.workers(), workers, schedule.workers());
  return schedule;
}

namespace {

constexpr std::int64_t rounds_of_endless = 64;  ///< that are looked at

int root_of(std::vector<int>& parent, int worker) {
  while (parent[static_cast<std::size_t>(worker)] != worker) {
    worker = parent[static_cast<std::size_t>(worker)] =
        parent[static_cast<std::size_t>(parent[static_cast<std::size_t>(worker)])];
  }
  return worker;
}

}  // namespace

std::int64_t rounds_with_all_edges(const Schedule& schedule) {
  return schedule.period_or(rounds_of_endless);
}

std::vector<std::vector<int>> living_parts(const Schedule& schedule, const std::vector<int>& dead) {
  const int workers = schedule.workers();
  std::vector<bool> lives(static_cast<std::size_t>(workers), true);
  for (const int worker : dead) lives[static_cast<std::size_t>(worker)] = false;
  std::vector<int> parent(static_cast<std::size_t>(workers));
  std::iota(parent.begin(), parent.end(), 0);
  auto left = std::ranges::count(lives, true);  // parts
  const std::int64_t rounds = rounds_with_all_edges(schedule);
  for (std::int64_t round = 0; round < rounds && left > 1; ++round) {
    const Topology topology = schedule.at(round);
    for (int worker = 0; worker < workers; ++worker) {
      for (const int neighbor : topology.in_neighbors(worker)) {
        if (!lives[static_cast<std::size_t>(worker)] || !lives[static_cast<std::size_t>(neighbor)])
          continue;
        const int a = root_of(parent, worker), b = root_of(parent, neighbor);
        if (a != b) --left;
        parent[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
      }
    }
  }
  std::vector<std::vector<int>> by_root(static_cast<std::size_t>(workers)), parts;
  for (int worker = 0; worker < workers; ++worker) {
    if (lives[static_cast<std::size_t>(worker)])
      by_root[static_cast<std::size_t>(root_of(parent, worker))].push_back(worker);
  }
  for (auto& part : by_root) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return parts;
}

std::string describe_parts(const std::vector<std::vector<int>>& parts) {
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.push_back(fmt::format("{{{}}}", fmt::join(part, ", ")));
  return fmt::format("{}", fmt::join(texts, " and "));
}

}  // namespace fast
