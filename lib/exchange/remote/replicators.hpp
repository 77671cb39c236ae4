// The replicators of a worker's remote neighbors: made for each worker that this one reads or is
// read by. When MPI fails on one edge, only that edge is given up: its worker shows no further sign
// of life here and becomes a suspect.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <exception>
#include <fast/core/log.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "exchange/remote/messages/failure_news.hpp"
#include "exchange/remote/remote_paths.hpp"
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

/// Makes a replicator for each remote worker that this one reads or is read by.
class ReplicatorFactory {
 public:
  /// Adds to `replicators`. All arguments must outlive this object.
  ReplicatorFactory(RemoteEdges& edges, const RemoteTransports& ways, Replicators& replicators,
                    FailureNews& failures)
      : edges_(edges), ways_(ways), replicators_(replicators), failures_(failures) {}

  /// Follows the remote neighbors of the current round and of the next one.
  void follow_neighbors();
  /// Follows a worker that has sent a message before this worker's plan named it. Takes the news
  /// that a worker has failed.
  void accept_unsolicited();

 private:
  void follow(int worker);

  RemoteEdges& edges_;
  const RemoteTransports& ways_;
  Replicators& replicators_;
  FailureNews& failures_;
  std::int64_t round_ = -1;  ///< the latest one whose neighbors are followed
  Clock::time_point looked_{};
};

}  // namespace fast::exchange
