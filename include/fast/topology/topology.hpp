// Who may talk to whom: a directed graph over the workers of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace fast {

/// What a kind of graph has to answer, in O(degree) where its rule allows. Immutable and
/// thread-safe.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual int workers() const = 0;
  /// Those whose values `worker` reads (who reads its values): sorted, distinct, without itself.
  virtual std::vector<int> in_neighbors(int worker) const = 0;
  virtual std::vector<int> out_neighbors(int worker) const = 0;
  /// True when in- and out-neighbours are the same for every worker.
  virtual bool is_symmetric() const = 0;
};

/// A directed graph by value (shared, immutable). Worker j is an in-neighbour of i when i reads j's
/// values. Knows nothing of weights unless the user gave some (see mixing/weights.hpp for rules
/// that make them).
class Topology {
 public:
  /// Takes a graph; `name` is for messages and summaries ("torus 2x2").
  Topology(std::string name, std::shared_ptr<const Graph> graph);

  /// From lists of in-neighbours, in_neighbors[i] being those whom i reads. Throws Error(topology)
  /// when a list names its own worker, one that the run lacks, or one twice.
  Topology(std::string name, std::vector<std::vector<int>> in_neighbors);

  /// The same with the user's own weights: weights[i][k] belongs to in_neighbors[i][k]; the rest of
  /// each row stays with the worker itself. Throws Error(topology) as above, and on sizes that do
  /// not fit.
  Topology(std::string name, std::vector<std::vector<int>> in_neighbors,
           std::vector<std::vector<double>> weights);

  const std::string& name() const { return name_; }
  int workers() const { return graph_->workers(); }
  std::vector<int> in_neighbors(int worker) const { return graph_->in_neighbors(worker); }
  std::vector<int> out_neighbors(int worker) const { return graph_->out_neighbors(worker); }
  bool is_symmetric() const { return graph_->is_symmetric(); }

  /// The user's weights along in_neighbors(worker), or empty when there are none.
  std::vector<double> given_weights(int worker) const;
  bool has_given_weights() const { return weights_ != nullptr; }

 private:
  std::string name_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const std::vector<std::vector<double>>> weights_;
};

}  // namespace fast
