// The replicators of a worker's remote neighbors. An edge that fails is given up by itself: its
// worker shows no further sign of life here and becomes a suspect, while the others go on.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

class Replicators {
 public:
  Replicators(int rank, LogSink log) : rank_(rank), log_(std::move(log)) {}
  Replicators(const Replicators&) = delete;
  Replicators& operator=(const Replicators&) = delete;

  void add(std::unique_ptr<Replicator> replicator);
  /// True for edges that were given up, too.
  bool follows(int worker) const;
  template <class Condition>
  bool any_of(const Condition& holds) const {
    return std::any_of(live_.begin(), live_.end(),
                       [&](const auto& replicator) { return holds(replicator->worker()); });
  }

  // None of these throws.
  /// True when something has moved.
  bool advance();
  void close();
  /// True when nothing is under way or owed on any edge that was not given up.
  bool closed();
  bool any_lost() const { return !lost_.empty(); }
  /// MPI may still write to them: they are kept to the process's end.
  void leave_to_mpi();

 private:
  template <class Call>
  bool any(const Call& call);

  int rank_;
  LogSink log_;
  std::vector<std::unique_ptr<Replicator>> live_, lost_;
};

/// Logs a warning; never throws, for threads that nobody catches for.
void warn(const LogSink& log, int rank, std::string_view text) noexcept;

}  // namespace fast::exchange
