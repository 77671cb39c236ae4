#include "mpi/leave.hpp"

#include <mpi.h>

#include "mpi/implementation.hpp"

namespace fast::mpi {

void leave(bool several_hosts) {
  if (implementation::process_manager_has_gone()) return;
  if (implementation::finalize_may_hang(several_hosts) && implementation::tell_process_manager())
    return;
  MPI_Finalize();
}

}  // namespace fast::mpi
