// Topologies by name or from a file.
#pragma once

#include <fast/topology/schedule.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fast {

/// Names that topology_by_name knows, each with a line of explanation.
struct TopologyName {
  std::string_view name;
  std::string_view help;
};
std::vector<TopologyName> topology_names();

/// A rule by its name ("torus2d"). Throws Error(topology) with the list of names on an unknown one.
TopologyRule topology_by_name(std::string_view name);

/// Reads a TOML file (docs/topology.md has the format). Throws Error(topology) that names file,
/// line or key.
TopologyRule load_topology(const std::string& path);

/// A path that exists (or ends in .toml or .mtx) is loaded, anything else is a name.
TopologyRule topology_from(const std::string& name_or_path);

}  // namespace fast
