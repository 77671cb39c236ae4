// What the library does differently with each implementation of MPI. A source for each defines all
// of this: mpich.cpp, which MPICH's derivatives have too, and open_mpi.cpp. <mpi.h> decides.
#pragma once

#include <cstddef>
#include <string_view>

namespace fast::mpi::implementation {

/// "MPICH" or "Open MPI".
std::string_view name();

/// Call it before MPI_Init. Sets what the transport below MPI needs. Values that are set already
/// have priority. Throws Error(resource) on all ranks of a program on one host if /dev/shm is too
/// small for MPI, which would abort; rank 0 reports it.
void prepare_transport();

/// How much of /dev/shm MPI itself takes for each rank of a host.
std::size_t shared_bytes_per_rank();

/// Whether MPI_Finalize may wait forever after all ranks have reached their end.
bool finalize_may_hang(bool several_hosts);

/// Whether this process's process manager has ended.
bool process_manager_has_gone();

/// Tells the process manager that this rank has ended well, where MPI_Finalize would wait for lost
/// ranks. False if that is not possible.
bool report_process_manager();

/// How a rank reads the memory of ranks of other hosts.
enum class Reads {
  window,          ///< by MPI_Rget from a window of MPI_Win_create
  dynamic_window,  ///< by MPI_Rget from a window of MPI_Win_create_dynamic
  messages,        ///< by messages that a thread answers. Either all ranks say this or none does
};
Reads reads();

/// How many parts of one long message to send at a time. Each part that arrives is a sign of life
/// of its sender, so parts have to arrive one after another.
std::size_t parts_at_a_time();

}  // namespace fast::mpi::implementation
