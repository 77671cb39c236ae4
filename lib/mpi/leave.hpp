// How a rank leaves MPI at the end.
#pragma once

#include <fast/core/deadline.hpp>

namespace fast::mpi {

/// Finalizes MPI. Call it when every rank has reached its end.
///
/// MPICH before 4.2 may hang in MPI_Finalize if ranks use UCX between hosts
/// (github.com/pmodels/mpich/pull/6596): a rank that has disconnected waits in a barrier of the
/// process manager and makes no progress for ranks that still disconnect. With such an MPICH and
/// `several_hosts`, this function only reports to the process manager that this rank is done. If
/// the process manager has gone, it does nothing.
void leave(bool several_hosts);

/// Sends `finalize` to the process manager (PMI version 1), over the descriptor that it gave this
/// process. False if that is not possible.
bool tell_process_manager();

}  // namespace fast::mpi
