// Networks to simulate. Component simgrid.
#pragma once

#include <string>
#include <vector>

namespace fast::simgrid {

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

}  // namespace fast::simgrid
