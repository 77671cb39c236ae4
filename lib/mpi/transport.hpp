// Settings of the transport below MPI.
#pragma once

namespace fast::mpi {

/// Call it before MPI_Init. If ranks of several hosts use TCP, it sets two variables of UCX. Values
/// that are set already have priority.
/// - UCX_RNDV_THRESH=1g: long messages are sent without asking the receiver first. The receiver's
///   answer would wait behind all data in the other direction, so both directions would take turns.
/// - UCX_ZCOPY_THRESH=inf: messages are copied before they are sent. Without the copy, UCX 1.13
///   ends the sender of a long MPI_Issend when the receiver dies ("tag-sync protocol").
void prepare_transport();

/// Whether this host has a network adapter that reads and writes the memory of other hosts by
/// itself. Without one, UCX answers each read by a message from the host that is read.
bool has_rdma();

}  // namespace fast::mpi
