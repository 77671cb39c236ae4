// A run to simulate, and what a simulation finds. Component simulation.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/topology/topology.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::simulation {

// How long training steps take, and when workers are absent: what a simulation is given. Component
// simulation.

/// Seconds of every step, by worker and round. The same arguments give the same seconds.
struct WorkTimes {
  double seconds = 0.1;        ///< mean of a step; above 0
  double jitter = 0;           ///< standard deviation of the logarithm (lognormal); 0: constant
  std::map<int, double> slow;  ///< worker: factor of its steps
  /// Measured seconds of steps, a list a worker; worker i draws from list i mod size. Not empty:
  /// they stand in place of `seconds` and `jitter`.
  std::vector<std::vector<double>> measured;
  std::uint64_t seed = 1;

  double of(int worker, std::int64_t round) const;
};

/// A factor with mean 1 whose logarithm has that standard deviation, a pure function of the rest.
double lognormal_factor(double sigma, std::uint64_t seed, std::uint64_t a, std::uint64_t b);

/// Returns the seconds of steps from the metrics that fast-train wrote (--out DIRECTORY). Each
/// worker has the mean step of each interval, or of each epoch where there are no intervals. Throws
/// Error(data) when there are none.
std::vector<std::vector<double>> measured_steps(const std::string& directory);

/// Workers that fail at a rate and return, in the round of their furthest neighbor.
struct Failures {
  double per_worker_hour = 0;  ///< failures of a worker in an hour of its steps
  double absent_s = 60;        ///< from a failure to the return
  double suspect_after_s = 5;  ///< neighbors leave a worker out so long after its failure
  std::uint64_t seed = 1;

  /// What part of the step passes before the worker fails in it; negative: it does not fail.
  double fails_after(int worker, std::int64_t round, double step_s) const;
};

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
  double worker_s = 0;  ///< of a round of a worker, mean
  double median_s = 0;  ///< of a round of a worker
  double p95_s = 0;
  double waiting_share = 0;           ///< of the workers' time
  std::optional<double> fresh_share;  ///< of reads: the publication of the reader's own round
  double mean_age = 0;                ///< rounds between a read publication and its reader
  std::int64_t reads = 0;
  std::int64_t left_out = 0;  ///< reads that had nothing, of absent workers
  std::int64_t failures = 0;
};

// Round times by a max-plus recurrence, for up to 10⁵ workers. Component simulation.

/// The recurrence t_i(r+1) = max(t_i(r) + step, arrival at i of what each source published for
/// round r - staleness or later). Messages of one source to one reader follow each other; other
/// messages do not slow each other unless `transfer` says so. At staleness 0, a worker that is
/// ahead waits until the readers of its three slots have read. Above it, a message has the newest
/// publication. O(edges·rounds) time. Memory: O(workers) at a bounded staleness, O(workers·rounds)
/// at none. Throws Error as check() does.
RoundFigures recur(const Workload& workload, const TransferTime& transfer);

}  // namespace fast::simulation
