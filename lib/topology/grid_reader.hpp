// Grids and tori as a topology file describes them.
#pragma once

#include <fast/topology/schedule.hpp>

#include "topology/reader.hpp"

namespace fast {

/// A torus or open grid; `dimensions` are those that the stencil's name says, or 0; `file_name`
/// names a graph of unusual offsets.
TopologyRule grid_in_table(const TableReader& reader, bool periodic, int dimensions,
                           const std::string& file_name);

/// Key "sides" of `reader`, empty when it is not there.
std::vector<int> sides_in_table(const TableReader& reader);

}  // namespace fast
