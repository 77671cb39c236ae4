// Training runs on a simulated network, by SimGrid. Component simgrid.
#pragma once

#include <fast/simulation/workload.hpp>

#include <string>
#include <vector>

namespace fast::simgrid {

// Networks to simulate. Component simgrid.

/// A generated network, or a file. Links are full duplex. No link is shared by all hosts.
struct Platform {
  /// star: every host at one switch. fat_tree: two levels, as many links up as down. dragonfly:
  /// all-to-all groups. sites: stars whose switches are connected pair by pair. Any other value is
  /// the path of a SimGrid platform (.xml). Its hosts are taken in the order of their names.
  std::string kind = "star";
  int hosts = 0;
  double bandwidth = 1.25e9;  ///< of a link, bytes per second and direction
  double latency_s = 25e-6;   ///< of a link; a message between two hosts of a star takes two
  int sites = 2;
  double wan_bandwidth = 1.25e8;  ///< between two sites
  double wan_latency_s = 10e-3;
};

/// Names for Platform::kind that are no file.
std::vector<std::string> platform_kinds();

struct LinkUse {
  std::string link;
  double size_bytes = 0;  ///< of all messages over it
};

struct SimulatedRun {
  simulation::RoundFigures figures;
  std::vector<LinkUse> links;  ///< most used first
};

struct RunOptions {
  int workers_per_host = 1;        ///< worker w is on host w / workers_per_host
  double memory_bandwidth = 10e9;  ///< of messages between workers of a host, bytes per second
  /// Each host has so many. A core copies one message at a time, also one from another host when it
  /// is there, in bytes / memory_bandwidth. 0: messages within a host wait for no other one, and
  /// those from other hosts are not copied.
  int cores = 0;
};

/// Simulates a run. Messages share links by max-min fairness (SimGrid's model CM02, without the
/// effects of TCP). At most one call a process, as SimGrid allows one simulation. Throws
/// Error(argument) for numbers out of range, Error(data) when the platform cannot be read.
SimulatedRun run(const simulation::Workload& workload, const Platform& platform,
                 const RunOptions& options = {});

}  // namespace fast::simgrid
