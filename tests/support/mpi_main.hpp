// What test programs run under mpiexec share.
#pragma once

#include <fast/mpi/communicator.hpp>

namespace fast::testing {

/// All ranks of the test program.
const mpi::Communicator& world();

}  // namespace fast::testing
