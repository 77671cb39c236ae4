// Matrix Market files (Boisvert et al. 1996), the exchange format of sparse matrices: SciPy's
// mmwrite and networkx, by way of SciPy, write it.
#pragma once

#include <fast/topology/schedule.hpp>

#include <string>

namespace fast {

/// Entry (i, j) is the weight with which worker i - 1 reads worker j - 1. A pattern, and a matrix
/// of ones only in which some row has several, is a graph without weights. Throws Error(topology)
/// with path and line.
TopologyRule rule_in_matrix(const std::string& path, const std::string& text);

}  // namespace fast
