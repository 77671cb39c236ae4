// --topology auto.
#pragma once

#include <fast/exchange/group.hpp>

#include "fast_train/options.hpp"

namespace fast_train {

/// Collective. Replaces the topology "auto" by a name, the same on all ranks, and prints the choice
/// and its reason once. Other topologies stay.
void choose_topology(const fast::Group& ranks, Options& o);

}  // namespace fast_train
