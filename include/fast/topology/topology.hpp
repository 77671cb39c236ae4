// Who may talk to whom: a directed graph over the workers of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fast {

/// The names of the rules that make mixing weights (fast/mixing/weights.hpp has the rules).
enum class WeightRule {
  metropolis,       ///< W_ij = 1/(1+max(d_i,d_j)); symmetric, doubly stochastic; undirected graphs
  uniform_rows,     ///< 1/(d_i+1), d_i the in-degree; doubly stochastic on regular graphs
  uniform_columns,  ///< 1/(d_j+1), d_j the out-degree of j: column-stochastic, for push-sum
  given,            ///< the user's own (Topology::given_weights)
  automatic,        ///< what the topology prefers (a file's key "weights"), else given if there are
                    ///< any, else metropolis on undirected and uniform_rows on directed graphs
};

std::string_view name(WeightRule rule) noexcept;
/// Throws Error(argument) with the list of names on an unknown one.
WeightRule weight_rule_by_name(std::string_view name);

/// What a kind of graph has to answer, in O(degree) where its rule allows. Immutable and
/// thread-safe. Derive from it for a graph of your own; Topology checks worker numbers before it
/// asks.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual int workers() const = 0;
  /// Those whose values `worker` reads: sorted, distinct, without itself.
  virtual std::vector<int> in_neighbors(int worker) const = 0;
  /// Those who read the values of `worker`: sorted, distinct, without itself.
  virtual std::vector<int> out_neighbors(int worker) const = 0;
  virtual int in_degree(int worker) const;
  virtual int out_degree(int worker) const;
  /// True when in- and out-neighbors are the same for every worker.
  virtual bool is_symmetric() const = 0;
};

/// What a Graph may be as well: one that brings its own mixing weights. Each row, or each column,
/// sums to 1.
class GraphWeights {
 public:
  virtual ~GraphWeights() = default;
  /// Along in_neighbors(worker).
  virtual std::vector<double> in_weights(int worker) const = 0;
  virtual double self_weight(int worker) const = 0;
};

/// A directed graph by value (shared, immutable). Worker j is an in-neighbor of i when i reads j's
/// values. Knows nothing of weights unless the user gave some (fast/mixing/weights.hpp has rules
/// that make them).
class Topology {
 public:
  /// Takes a graph, with its weights when it is a GraphWeights as well; `name` is for messages and
  /// summaries ("torus 2x2").
  Topology(std::string name, std::shared_ptr<const Graph> graph);

  /// Takes lists of in-neighbors, in any order; in_neighbors[i] are those whom i reads. Throws
  /// Error(topology) when a list names its own worker, one that the run lacks, or one twice.
  Topology(std::string name, std::vector<std::vector<int>> in_neighbors);

  /// Makes a graph with the user's own weights: weights[i][k] belongs to in_neighbors[i][k],
  /// self_weights[i] to worker i itself. Without self_weights the worker keeps the rest of its row.
  /// Throws Error(topology) as above, on sizes that do not fit, and on weights that are negative or
  /// not finite. Every row or every column must sum to 1 (to 1e-9), else it throws Error(topology):
  /// rows are what averaging needs, columns what push-sum needs.
  Topology(std::string name, std::vector<std::vector<int>> in_neighbors,
           std::vector<std::vector<double>> weights, std::vector<double> self_weights = {});

  const std::string& name() const { return name_; }
  const Graph& graph() const { return *graph_; }
  int workers() const { return graph_->workers(); }
  bool is_symmetric() const { return graph_->is_symmetric(); }

  /// These are the functions of Graph. They throw Error(argument) unless 0 ≤ worker < workers().
  std::vector<int> in_neighbors(int worker) const;
  std::vector<int> out_neighbors(int worker) const;
  int in_degree(int worker) const;
  int out_degree(int worker) const;

  bool has_given_weights() const { return given_ != nullptr; }
  /// The user's weights along in_neighbors(worker), or empty when there are none.
  std::vector<double> given_weights(int worker) const;
  /// The user's weight of the worker's own value; 1 when there are none.
  double given_self_weight(int worker) const;

  /// The topology's file may ask for a rule, for which WeightRule::automatic then stands, and for
  /// lazy weights, which then do not depend on the caller.
  WeightRule preferred_weights() const { return preferred_; }
  bool prefers_lazy() const { return lazy_; }
  Topology with_weights(WeightRule preferred, bool lazy) const;

 private:
  void check_worker(int worker) const;

  std::string name_;
  std::shared_ptr<const Graph> graph_;
  const GraphWeights* given_ = nullptr;  // graph_, when it has weights
  WeightRule preferred_ = WeightRule::automatic;
  bool lazy_ = false;
};

// Topologies over time, and rules that make one for any number of workers.

/// The topology of every round, the same on all workers without talking. It is a value, immutable
/// and thread-safe. A Topology is a schedule that never changes.
class Schedule {
 public:
  using AtRound = std::function<Topology(std::int64_t round)>;

  Schedule(Topology topology);  // NOLINT: a topology is a schedule
  /// These topologies in turn, again and again. Throws Error(topology) when there are none or their
  /// numbers of workers differ.
  Schedule(std::string name, std::vector<Topology> rounds);
  /// `period` rounds repeat; 0 when the sequence never repeats. at_round must be a pure function.
  Schedule(std::string name, int workers, std::int64_t period, AtRound at_round);

  const std::string& name() const { return name_; }
  int workers() const { return workers_; }
  std::int64_t period() const { return period_; }
  /// How many rounds show all that the schedule does: its period, or `of_endless` when it never
  /// repeats.
  std::int64_t period_or(std::int64_t of_endless) const {
    return period_ > 0 ? period_ : of_endless;
  }
  bool is_static() const { return period_ == 1; }
  /// The topology of round `round`. Throws Error(argument) when it is negative.
  Topology at(std::int64_t round) const;
  /// Returns the schedule whose rounds are those of Topology::with_weights.
  Schedule with_weights(WeightRule preferred, bool lazy) const;

 private:
  std::string name_;
  int workers_;
  std::int64_t period_;
  AtRound at_round_;
};

/// A rule that makes a schedule for any number of workers: what the stencil:: and schedule::
/// functions give and what Worker takes. A Topology or Schedule is the rule that fits its own
/// number of workers only.
class TopologyRule {
 public:
  using Make = std::function<Schedule(int workers)>;

  /// `workers` is the number that the rule is made for, 0 when it fits any.
  TopologyRule(std::string name, Make make, int workers = 0);
  TopologyRule(Topology topology);  // NOLINT: converts on purpose
  TopologyRule(Schedule schedule);  // NOLINT

  const std::string& name() const { return name_; }
  /// The number of workers it is made for (of a file of edges: the least that holds them), or 0.
  int natural_workers() const { return workers_; }
  /// Throws Error(topology) when the rule does not fit that number of workers.
  Schedule make(int workers) const;

 private:
  std::string name_;
  Make make_;
  int workers_;
};

// Into what parts a topology falls without some of its workers.

/// The number of rounds that have all edges: the period, or 64 of a schedule that never repeats.
std::int64_t rounds_with_all_edges(const Schedule& schedule);

/// The workers that are not among `dead`, in parts that edges of some round connect, whichever way
/// they point (see rounds_with_all_edges). Each part is sorted; the largest comes first, of equal
/// ones that of the lowest worker.
std::vector<std::vector<int>> living_parts(const Schedule& schedule, const std::vector<int>& dead);

/// "{0, 1, 5} and {3}": of parts as above.
std::string describe_parts(const std::vector<std::vector<int>>& parts);

}  // namespace fast
