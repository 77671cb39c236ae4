// MPI beside other libraries of the process: their communicators, and memory of devices.
#pragma once

#include <fast/mpi/communicator.hpp>

#include <string>

namespace fast::mpi {

// Communicators of other libraries of the same process.

/// Collective over the ranks of the communicator. `handle` is the address of an MPI_Comm of the MPI
/// that this library is linked with. The result is a duplicate. MPI has been initialized.
Communicator from_handle(const void* handle);

// Whether MPI accepts pointers to the memory of GPUs.

/// Empty if MPI reports support for CUDA memory; else one line. MPI must have been initialized.
/// Test the support before relying on it.
std::string why_not_cuda_memory();

}  // namespace fast::mpi
