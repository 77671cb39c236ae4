// Whether MPI accepts pointers to the memory of GPUs.
#pragma once

#include <string>

namespace fast::mpi {

/// Empty if MPI reports support for CUDA memory; else one line. MPI must have been initialized.
/// Test the support before relying on it.
std::string why_not_cuda_memory();

}  // namespace fast::mpi
