// Makes SimGrid's platforms.
#pragma once

#include <simgrid/s4u.hpp>

#include <fast/simgrid/platform.hpp>
#include <vector>

namespace fast::simgrid {

/// Builds the network in the engine. The hosts in the order of the workers, at least `hosts`.
std::vector<::simgrid::s4u::Host*> build_platform(const ::simgrid::s4u::Engine& engine,
                                                  const Platform& platform, int hosts);

/// Throws Error for what build_platform() would end the program for.
void check_platform(const Platform& platform);

}  // namespace fast::simgrid
