// How a rank leaves MPI at the end.
#pragma once

namespace fast::mpi {

/// Finalizes MPI. Call it when every rank has reached its end. Where MPI_Finalize may hang, or
/// complain about calls that ranks that have failed left open, this function only reports to the
/// process manager that this rank is done. If the process manager has gone, it does nothing.
void leave(bool several_hosts, bool some_failed);

}  // namespace fast::mpi
