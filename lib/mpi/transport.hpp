// The transport below MPI.
#pragma once

namespace fast::mpi {

/// Whether this host has a network adapter that reads and writes the memory of other hosts by
/// itself. Without one, the host that is read answers each read by a message.
bool has_rdma();

}  // namespace fast::mpi
