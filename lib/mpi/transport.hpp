// Settings of the transport below MPI.
#pragma once

namespace fast::mpi {

/// Call it before MPI_Init. If ranks of several hosts use TCP, UCX then sends long messages without
/// asking the receiver first. The receiver's answer would wait behind all data in the other
/// direction, so both directions would take turns. UCX_RNDV_THRESH in the environment has priority.
void prepare_transport();

}  // namespace fast::mpi
