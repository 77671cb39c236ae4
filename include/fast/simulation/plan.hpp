// Which topology, staleness and codec train fastest on a cluster, by estimates. Component
// simulation.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/algorithm/rules.hpp>
#include <fast/simulation/cluster.hpp>
#include <fast/simulation/workload.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fast::simulation {

/// The exchanges that a plan compares.
struct PlanOptions {
  /// Names or files; empty: planned_topologies(), or those of a rule that needs sites.
  std::vector<std::string> topologies;
  std::vector<std::int64_t> staleness = {0, 1};
  std::vector<std::string> codecs = {"identity", "bf16", "int8"};
  std::string algorithm = "awc";
  algorithm::Parameters parameters;  ///< of the algorithm, as {"period", "50"}
  std::int64_t rounds = 100;         ///< of the recurrence
  std::uint64_t seed = 1;
};

std::vector<std::string> planned_topologies();

/// One row of a plan. Figures are simulated.
struct Candidate {
  std::string exchange;                   ///< name of the topology, or "all-reduce (ring)"
  std::optional<std::int64_t> staleness;  ///< none of all-reduces
  std::string codec;
  double round_s = 0;  ///< of one training step; rules with local steps: in the mean
  double waiting_share = 0;
  double mean_age = 0;                ///< rounds
  std::optional<double> consensus_s;  ///< until a disagreement is 1/1000
  double effective_neighbors = 0;     ///< see effective_neighbors()
  double relative_rounds = 1;         ///< to the same accuracy; exact averages: 1
  double relative_seconds = 1;        ///< to the same accuracy; the best: 1
  bool is_allreduce() const { return !staleness; }
};

struct Plan {
  std::vector<Candidate> candidates;  ///< best first
  std::vector<std::string> left_out;  ///< what cannot be planned, and why
};

/// Rounds to the same accuracy by an estimate: (1 + m/n_eff) / (1 + m/N) with m critical workers.
double relative_rounds(double effective_neighbors, int workers, double critical_workers);

/// Workers are placed on hosts as fast-train places them. The messages between two hosts share the
/// links of these hosts. A message takes latency + bytes · flows / bandwidth. `flows` is the number
/// of messages of the round that leave the source's host, or that enter the reader's host if those
/// are more. On average, no round is shorter than the messages of a round take on the busiest link.
/// A rule with H local steps exchanges once in H rounds. The plan takes into account what the rule
/// publishes before its exchange, or selects of the weights. Throws Error(argument) for unknown
/// names.
Plan plan(const Cluster& cluster, const PlanOptions& options = {});

/// The transfer times that plan() uses for a schedule that is already placed; rank r is on host
/// r / workers_per_host.
TransferTime shared_links(const Cluster& cluster, const Schedule& schedule);
/// Returns the time of an all-reduce. The messages of one of its steps share the links.
TransferTime allreduce_links(const Cluster& cluster, Pattern pattern);

}  // namespace fast::simulation
