// Rules from the tables of a topology file.
#pragma once

#include <fast/topology/schedule.hpp>

#include "topology/reader.hpp"

namespace fast {

/// The rule of a file's table, or of one of its rounds; docs/reference/topologies.md has the keys.
/// `table` needs to live only until the call returns. Throws Error(topology).
TopologyRule rule_in_table(const std::string& path, const toml::table& table);

}  // namespace fast
