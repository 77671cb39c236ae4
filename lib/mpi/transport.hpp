// What the library asks of the transport below MPI.
#pragma once

namespace fast::mpi {

/// Before MPI_Init: where ranks of several hosts talk over TCP, lets UCX send long messages without
/// asking the receiver first, whose answer would wait behind all that is under way the other way
/// (two directions at once then take turns). UCX_RNDV_THRESH in the environment says otherwise.
void prepare_transport();

}  // namespace fast::mpi
