#include <mpi.h>

#if defined(OPEN_MPI)

#include "mpi/implementation.hpp"

namespace fast::mpi::implementation {

std::string_view name() { return "Open MPI"; }

void prepare_transport() {}

bool finalize_may_hang(bool /*several_hosts*/) { return false; }

bool process_manager_has_gone() { return false; }

bool tell_process_manager() { return false; }

/// Open MPI 4.1 has no one-sided reads over TCP for programs of several threads: osc/pt2pt refuses
/// MPI_THREAD_MULTIPLE (github.com/open-mpi/ompi/pull/5200), and osc/rdma needs RDMA.
Reads reads() { return Reads::messages; }

}  // namespace fast::mpi::implementation

#endif
