#include "mpi/handle.hpp"

#include <cstring>

#include "mpi/impl.hpp"

namespace fast::mpi {

Communicator from_handle(const void* handle) {
  MPI_Comm origin = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  std::memcpy(&origin, handle, sizeof origin);
  check(MPI_Comm_dup(origin, &copy), "MPI_Comm_dup");
  return Communicator(std::make_shared<Communicator::Impl>(copy));
}

}  // namespace fast::mpi
