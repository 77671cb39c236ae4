// Topologies by name or from a file.
#pragma once

#include <fast/topology/topology.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fast {

/// A name that topology_by_name knows, with a line of explanation.
struct TopologyName {
  std::string_view name;
  std::string_view help;
  bool is_schedule = false;  ///< its topology changes from round to round
};
std::vector<TopologyName> topology_names();

/// A rule by its name ("torus2d"; "torus" is the same, and - may stand for _). A grid's name may
/// have its sides ("torus2d:4x8"), and that of sites the rounds between two exchanges ("sites:50").
/// Throws Error(topology) with the list of names on an unknown one.
TopologyRule topology_by_name(std::string_view name);

/// Whether such a name is a schedule's. Throws like topology_by_name.
bool is_schedule_name(std::string_view name);

/// Reads a TOML or Matrix Market file; docs/reference/topologies.md has the formats. Throws
/// Error(data) when the file cannot be read. Throws Error(topology) with file, line and key when it
/// does not make a topology. The rule throws Error(topology) when it does not fit the number of
/// workers.
TopologyRule load_topology(const std::string& path);

/// Reads the topology from a file's text. `path` is for messages, and its ending gives the format.
TopologyRule parse_topology(const std::string& text, const std::string& path);

/// What ends in .toml or .mtx, has a slash or is a file is loaded, anything else is a name.
TopologyRule topology_from(const std::string& name_or_path);

/// Finds a topology on known hosts. The names "hierarchical", "hierarchical_one_peer",
/// "sharded_one_peer" and "sites" follow the hosts if there are several. host_of_rank[r] is any
/// number that differs between hosts (Group::hosts() has them).
TopologyRule topology_on_hosts(const std::string& name_or_path,
                               const std::vector<int>& host_of_rank);

}  // namespace fast
