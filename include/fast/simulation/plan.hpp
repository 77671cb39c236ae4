// Which topology, staleness and codec train fastest on a cluster, by estimates. Component
// simulation.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/algorithm/rules.hpp>
#include <fast/simulation/workload.hpp>
#include <fast/topology/topology.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fast::simulation {

// A cluster for plans: hosts, network, steps. Component simulation.

/// docs/how-to/plan-a-cluster.md describes the file. Rates are in bytes per second, sigmas are of
/// the logarithm.
struct Cluster {
  int hosts = 0;
  int workers_per_host = 1;
  double link_bandwidth = 0;  ///< of a host, in each direction
  double link_latency_s = 50e-6;
  double link_jitter = 0;          ///< sigma of the time of a message
  double memory_bandwidth = 10e9;  ///< of messages within a host
  double step_s = 0;
  double step_jitter = 0;
  double payload_bytes = 0;        ///< of a message of the codec identity, f32
  double critical_workers = 0;     ///< averages over more help less; 0: the number of workers
  double decay = 0.951;            ///< γ of the effective number of neighbors
  double allreduce_overlap = 0.5;  ///< share of the step behind which an all-reduce can hide

  int workers() const { return hosts * workers_per_host; }
};

/// Reads a TOML file. Throws Error(data) when it cannot be read and Error(argument), with file,
/// line and key, when it does not describe a cluster.
Cluster load_cluster(const std::string& path);
Cluster parse_cluster(const std::string& text, const std::string& path);

/// The text of such a file.
std::string cluster_text(const Cluster& cluster);

// How well a schedule mixes, for plans. Component simulation. Values of neighbors enter `delay`
// rounds late; 0 is synchronous.

/// The effective number of neighbors of Vogels, Hendrikx & Jaggi 2022 (arXiv 2206.03093): in the
/// random walk x ← W(√γ x + ξ) with normal noise ξ, the variance of a worker alone, 1/(1-γ),
/// divided by the mean variance of the workers. It is 1 without mixing and N for exact averages.
/// With a delay, both variances are divided by the square of what a constant drift moves a worker.
/// The number is the mean over the workers and the rounds of a period in which values start. It is
/// exact for static topologies that look alike from every worker and for few workers; else it comes
/// from samples, drawn by a fixed seed. Throws Error(argument) unless 0 < γ < 1, and
/// Error(topology) when the rule does not fit.
double effective_neighbors(const Schedule& schedule, double gamma, int delay = 0,
                           WeightRule rule = WeightRule::automatic, bool lazy = false);

/// Rounds until a disagreement has shrunk to 1/1000. It is that of analyze() without delay. With a
/// delay, it follows from the rate at which the spread of random values shrinks in the end, as far
/// as a simulation of some seconds sees it. None when it does not shrink.
std::optional<double> rounds_to_consensus(const Schedule& schedule, int delay = 0,
                                          WeightRule rule = WeightRule::automatic,
                                          bool lazy = false);

/// Both figures of relay_sum on a tree, which uses no weights: a worker takes the mean of all,
/// those at the distance d as they were d - 1 rounds before. Throws as effective_neighbors().
struct RelayMixing {
  double neighbors = 1;          ///< see effective_neighbors()
  std::optional<double> rounds;  ///< see rounds_to_consensus()
};
RelayMixing relay_mixing(const Schedule& tree, double gamma);

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
  std::int64_t every = 1;  ///< steps between two exchanges
  double round_s = 0;      ///< of one training step; rules with local steps: in the mean
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
  std::vector<std::string> notes{};   ///< why rounds are long, and what was planned because of it
};

/// The share of the speed without exchange that a plan is to keep.
inline constexpr double planned_speed = 0.95;

/// Rounds to the same accuracy by an estimate: (1 + m/n_eff) / (1 + m/N) with m critical workers.
double relative_rounds(double effective_neighbors, int workers, double critical_workers);

/// Workers are placed on hosts as fast-train places them. The messages between two hosts share the
/// links of these hosts. A message takes latency + bytes · flows / bandwidth. `flows` is the number
/// of messages of the round that leave the source's host, or that enter the reader's host if those
/// are more. On average, no round is shorter than the messages of a round take on the busiest link.
/// A rule with H local steps exchanges once in H rounds, and its weights decay by γ^H between two
/// exchanges. The plan takes into account what the rule publishes before its exchange, or selects
/// of the weights. If the options name no topology and keep the algorithm, and no exchange with
/// neighbors in every step keeps planned_speed, then gasloc is planned, too: on ring and
/// hierarchical_one_peer, for each staleness and codec with the best H of 2, 4, ..., 64. Throws
/// Error(argument) for unknown names.
Plan plan(const Cluster& cluster, const PlanOptions& options = {});

// Sites that exchange over a message server: docs/how-to/sites.md. Component simulation.

struct PlannedSite {
  int workers = 1;
  double bandwidth = 0;  ///< bytes per second to and from the server, in each direction
  double latency_s = 0;  ///< one way, to the server
};

struct PlannedSites {
  double step_s = 0;         ///< of a step of each site
  double payload_bytes = 0;  ///< the model in f32
  std::vector<PlannedSite> sites;
};

/// Reads a TOML file, with a table [[site]] for each. Throws as load_cluster().
PlannedSites load_sites(const std::string& path);
PlannedSites parse_sites(const std::string& text, const std::string& path);

/// With one codec: how many steps H between two exchanges keep the speed, at least.
struct SitePlan {
  std::string codec;
  double message_bytes = 0;
  double exchange_s = 0;           ///< E, from a publication until its neighbors have it
  std::int64_t every_waiting = 0;  ///< at staleness 0 without a delay
  std::int64_t every_delayed = 0;  ///< at staleness 0 with a delay of H - 1 steps
  std::optional<std::int64_t>
      every_never{};  ///< that never wait; none: the codec needs staleness 0
};

/// Site i reads n_i others, which read it: E is the largest of 3 (l_i + l_j) + 2 b max(n_i / r_i,
/// n_j / r_j) over the sites j that i reads, with the latencies l, the rates r and the bytes b of a
/// message. A request and what announces the message take two of the three ways. Bursts by TCP fill
/// half of a slow link. Sites that wait make H steps of s seconds in H s + max(0, E - D s), with a
/// delay of D steps. Sites that never wait also read the neighbors of the next exchange, which then
/// count in n. What they read is at most 2 H rounds old if E <= H s. Codecs that send differences
/// are left out where neighbors change. Empty `codecs` stand for the usual ones that fit the
/// model. Throws Error(argument) for unknown codecs, Error(topology) for a topology that does not
/// fit.
std::vector<SitePlan> plan_sites(const PlannedSites& sites, const std::string& topology,
                                 const std::vector<std::string>& codecs,
                                 double speed = planned_speed);

/// The transfer times that plan() uses for a schedule that is already placed; rank r is on host
/// r / workers_per_host.
TransferTime shared_links(const Cluster& cluster, const Schedule& schedule);
/// Returns the time of an all-reduce. The messages of one of its steps share the links.
TransferTime allreduce_links(const Cluster& cluster, Pattern pattern);

}  // namespace fast::simulation
