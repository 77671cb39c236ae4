// What processes of one host can do with each other: containers and kernels forbid some of it.
#pragma once
namespace fast::mpi {

/// Whether processes of this user can read each other's memory (process_vm_readv), which UCX uses
/// for long messages. Starts a process that shares nothing with this one, reads from it and ends
/// it. A container without ptrace forbids such reads.
bool can_read_other_processes();

/// Whether the process at the other end of a connection is in another user namespace, or cannot be
/// seen. Of the process manager: each rank may then have a user namespace of its own, as container
/// runtimes without root rights make them. False if `connection` is no Unix socket.
bool is_in_other_user_namespace(int connection);

/// Removes files from /dev/shm that MPI and UCX have left behind, which happens if a process ends
/// while MPI starts. Only files of this user that no process has open, whichever namespace that
/// process is in.
void remove_stale_shared_memory();

// The transport below MPI.

/// Whether this host has a network adapter that reads and writes the memory of other hosts by
/// itself. Without one, the host that is read answers each read by a message.
bool has_rdma();

}  // namespace fast::mpi
