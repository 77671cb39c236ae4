// A cluster for plans: hosts, network, steps. Component simulation.
#pragma once

#include <string>
#include <vector>

namespace fast::simulation {

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

}  // namespace fast::simulation
