// Hops from any worker to any other.
#pragma once

#include <fast/topology_tools/analysis.hpp>

namespace fast {

/// Of the graph of all edges of a period (looked_at_of_endless rounds of an endless schedule): by
/// one search on a torus, where all workers see the same; by one a worker up to 20,000 of them;
/// else a bound from a few searches. The graph is strongly connected.
Figure diameter(const Schedule& schedule);

/// Whether every round is a stencil on a torus, so that all workers are alike.
bool closed_form_shape(const Schedule& schedule);

}  // namespace fast
