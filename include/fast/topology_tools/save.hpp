// Topologies with their weights as files that load_topology() reads. Component topology_tools.
#pragma once

#include <fast/mixing/weights.hpp>

#include <string>

namespace fast {

/// Returns the text of a TOML file, or of a Matrix Market file when `path` ends in .mtx. It holds
/// every weight, so that loading gives the same matrices bit for bit. Throws Error(topology) for
/// schedules that never repeat and, in Matrix Market, for those of more than one round. Throws
/// Error(argument) when `path` has another ending.
std::string topology_text(const Schedule& schedule, const std::string& path,
                          WeightRule rule = WeightRule::automatic, bool lazy = false);

}  // namespace fast
