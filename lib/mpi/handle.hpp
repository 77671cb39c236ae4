// Communicators of other libraries of the same process.
#pragma once

#include <fast/mpi/communicator.hpp>

namespace fast::mpi {

/// Collective over the ranks of the communicator. `handle` is the address of an MPI_Comm of the MPI
/// that this library is linked with. The result is a duplicate. MPI has been initialized.
Communicator from_handle(const void* handle);

}  // namespace fast::mpi
