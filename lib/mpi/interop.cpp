#include "mpi/interop.hpp"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI's
#endif

#include <cstring>

#include "mpi/impl.hpp"

namespace fast::mpi {

Communicator from_handle(const void* handle) {
  MPI_Comm origin = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  std::memcpy(&origin, handle, sizeof origin);
  check(MPI_Comm_dup(origin, &copy), "MPI_Comm_dup");
  return Communicator(std::make_shared<Communicator::Impl>(copy));
}

namespace {

bool mpi_reports_support() {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#elif defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace

std::string why_not_cuda_memory() {
  return mpi_reports_support() ? "" : "this MPI does not report support for CUDA memory";
}

}  // namespace fast::mpi
