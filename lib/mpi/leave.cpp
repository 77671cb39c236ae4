#include "mpi/leave.hpp"

#include <mpi.h>

#include "mpi/implementation.hpp"

namespace fast::mpi {

void leave(bool several_hosts, bool some_failed) {
  if (implementation::process_manager_has_gone()) return;
  const bool may_hang = some_failed || implementation::finalize_may_hang(several_hosts);
  if (may_hang && implementation::report_process_manager()) return;
  MPI_Finalize();
}

}  // namespace fast::mpi
