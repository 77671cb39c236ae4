// How a rank leaves MPI at the end.
#pragma once

#include <fast/core/deadline.hpp>

namespace fast::mpi {

/// Finalizes MPI. MPICH before 4.2 may hang in MPI_Finalize when ranks talk over UCX between hosts
/// (github.com/pmodels/mpich/pull/6596): a rank that has disconnected waits in a barrier of the
/// process manager, where it serves nobody who still disconnects. There, with `several_hosts`, the
/// process manager is told that this rank is done, and MPI is left as it is until the process ends.
/// Call when every rank has come to its end.
void leave(bool several_hosts);

/// Says `finalize` in the process manager's wire protocol (PMI version 1), over the descriptor that
/// it gave this process. False when that cannot be done.
bool tell_process_manager();

}  // namespace fast::mpi
