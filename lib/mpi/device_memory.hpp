// Whether MPI takes pointers to the memory of GPUs. Internal to the library.
#pragma once

#include <string>

namespace fast::mpi {

/// Empty when MPI says that it does for CUDA's; else one line. MPI must have been initialized. To
/// be proved before it is relied on.
std::string why_not_cuda_memory();

}  // namespace fast::mpi
