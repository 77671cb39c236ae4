// The replicators of a worker's remote neighbors. When MPI fails on one edge, only that edge is
// given up: its worker shows no further sign of life here and becomes a suspect.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <exception>
#include <fast/core/observer.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// Warnings about edges to other hosts.
///
/// Of one worker. Messages name workers by their seats where there are spares.
class RemoteLog {
 public:
  /// `number_of`: ExchangeOptions::number_of.
  RemoteLog(int rank, LogSink sink, std::function<int(int rank)> number_of = {})
      : rank_(rank), sink_(std::move(sink)), number_of_(std::move(number_of)) {}

  int number_of(int rank) const { return number_of_ ? number_of_(rank) : rank; }
  /// An error of the sink does not end training.
  void warn(std::string_view text) const noexcept {
    try {
      if (sink_) sink_(LogLevel::warning, fmt::format("worker {}: {}", number_of(rank_), text));
    } catch (const std::exception&) {
      return;
    }
  }

 private:
  int rank_;
  LogSink sink_;
  std::function<int(int)> number_of_;
};

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
    return std::ranges::any_of(live_,
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
