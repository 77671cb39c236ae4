// Who may talk to whom: a directed graph over the workers of a run.
#pragma once

#include <fast/topology/weight_rule.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fast {

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

}  // namespace fast
