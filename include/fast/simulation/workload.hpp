// A run to simulate, and what a simulation finds. Component simulation.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/simulation/work.hpp>
#include <fast/topology/schedule.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace fast::simulation {

/// How workers exchange.
enum class Pattern {
  neighbors,           ///< by the schedule
  ring_allreduce,      ///< 2(N-1) messages of payload/N to the next worker
  doubling_allreduce,  ///< recursive doubling: log₂N messages of the whole payload
  /// Recursive halving, then doubling (Rabenseifner; Thakur, Rabenseifner & Gropp 2005): messages
  /// of payload/2, payload/4, ..., payload/N, then payload/N, ..., payload/2. In both, workers
  /// beyond a power of two give their payload to the next worker and get the result from it.
  halving_allreduce,
  nobody,  ///< no exchange
};

std::string_view name(Pattern pattern) noexcept;
/// Throws Error(argument) with the list of names on an unknown one.
Pattern pattern_by_name(std::string_view name);

/// A training run without weights.
struct Workload {
  Schedule schedule;
  Pattern pattern = Pattern::neighbors;
  std::int64_t staleness = 0;  ///< bound; unbounded_staleness of fast/exchange/exchange.hpp: inf
  algorithm::PublishPoint publish_point = algorithm::PublishPoint::before_step;
  double payload_bytes = 0;  ///< of one message
  std::int64_t rounds = 100;
  WorkTimes work{};
  Failures failures{};

  bool is_exact() const { return staleness == 0; }
  bool publishes_before_step() const {
    return publish_point == algorithm::PublishPoint::before_step;
  }
  /// Workers publish their first weights at the start. Above staleness 0, they are those of round
  /// 0.
  bool begins_published() const { return !is_exact() && !publishes_before_step(); }
};

/// Throws Error(argument) for numbers out of range.
void check(const Workload& workload);

/// Seconds from the start of a message until it has arrived, latency included, where messages do
/// not slow each other. `round` is that of the reader.
using TransferTime = std::function<double(std::int64_t round, int from, int to, double size_bytes)>;

/// What happened in the rounds of all workers.
struct RoundFigures {
  double total_s = 0;   ///< until the last worker has finished
  double mean_s = 0;    ///< total_s / rounds
  double median_s = 0;  ///< of a round of a worker
  double p95_s = 0;
  double waiting_share = 0;           ///< of the workers' time
  std::optional<double> fresh_share;  ///< of reads: the publication of the reader's own round
  double mean_age = 0;                ///< rounds between a read publication and its reader
  std::int64_t reads = 0;
  std::int64_t left_out = 0;  ///< reads that had nothing, of absent workers
  std::int64_t failures = 0;
};

}  // namespace fast::simulation
