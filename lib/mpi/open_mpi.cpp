#include <mpi.h>

#if defined(OPEN_MPI)

#include <csignal>

#include "mpi/implementation.hpp"

namespace fast::mpi::implementation {

std::string_view name() { return "Open MPI"; }

/// Writing to the connection of a rank that has died raises SIGPIPE (btl/tcp), which would end this
/// rank too. A handler of the program stays.
void prepare_transport() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

/// The segment of btl/vader (btl_vader_segment_size), with its header.
std::size_t shared_bytes_per_rank() { return 4'310'000; }

bool finalize_may_hang(bool /*several_hosts*/) { return false; }

bool process_manager_has_gone() { return false; }

bool report_process_manager() { return false; }

/// Open MPI 4.1 has no one-sided reads over TCP for programs of several threads: osc/pt2pt refuses
/// MPI_THREAD_MULTIPLE (github.com/open-mpi/ompi/pull/5200), and osc/rdma needs RDMA.
Reads reads() { return Reads::messages; }

/// Open MPI moves all parts that are under way at the same time: on a slow link, all would arrive
/// at the end.
std::size_t parts_at_a_time() { return 2; }

}  // namespace fast::mpi::implementation

#endif
