// The replicators of a worker's remote neighbors. When MPI fails on one edge, only that edge is
// given up: its worker shows no further sign of life here and becomes a suspect.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "exchange/remote/remote_log.hpp"
#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

class Replicators {
 public:
  explicit Replicators(RemoteLog log) : log_(std::move(log)) {}
  Replicators(const Replicators&) = delete;
  Replicators& operator=(const Replicators&) = delete;

  void add(std::unique_ptr<Replicator> replicator);
  /// True also for an edge that was given up.
  bool follows(int worker) const;
  template <class Condition>
  bool any_of(const Condition& holds) const {
    return std::any_of(live_.begin(), live_.end(),
                       [&](const auto& replicator) { return holds(replicator->worker()); });
  }

  /// Of all edges that were not given up.
  Seconds slowest_read() const;

  // None of these throws.
  /// True when something has moved.
  bool advance();
  void close();
  /// True when all edges are closed that were not given up.
  bool closed();
  bool any_failed() const { return !failed_.empty(); }
  /// MPI may still write to the replicators' memory: keeps it until the process ends.
  void leave_to_mpi();

 private:
  template <class Call>
  bool any(const Call& call);

  RemoteLog log_;
  std::vector<std::unique_ptr<Replicator>> live_, failed_;
};

}  // namespace fast::exchange
