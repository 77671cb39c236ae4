#include <mpi.h>

#if defined(MPICH_VERSION)

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "mpi/implementation.hpp"
#include "mpi/started.hpp"
#include "mpi/transport.hpp"

namespace fast::mpi::implementation {
namespace {

constexpr int answer_within_ms = 5000;

/// Its descriptor, which it gave this process (PMI version 1); -1 if there is none.
int process_manager() {
  const char* descriptor = std::getenv("PMI_FD");
  return descriptor == nullptr ? -1 : std::atoi(descriptor);
}

/// Without SIGPIPE if the process manager has gone.
bool send(int fd, std::string_view text) {
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

bool is_on_one_host() {
  const std::optional<Started> ranks = started();
  const bool all_are_here = ranks && ranks->here > 0 && ranks->here == ranks->size;
  return all_are_here && std::getenv("MPIR_CVAR_NOLOCAL") == nullptr;  // set: as if on several
}

}  // namespace

std::string_view name() { return "MPICH"; }

/// Two variables of UCX, for ranks of several hosts that use TCP.
/// - UCX_RNDV_THRESH=1g: long messages are sent without asking the receiver first. The receiver's
///   answer would wait behind all data in the other direction, so both directions would take turns.
/// - UCX_ZCOPY_THRESH=inf: messages are copied before they are sent. Without the copy, UCX 1.13
///   ends the sender of a long MPI_Issend when the receiver dies ("tag-sync protocol").
void prepare_transport() {
  if (is_on_one_host() || has_rdma()) return;
  setenv("UCX_RNDV_THRESH", "1g", 0);
  setenv("UCX_ZCOPY_THRESH", "inf", 0);
}

/// MPICH before 4.2 may hang in MPI_Finalize if ranks use UCX between hosts
/// (github.com/pmodels/mpich/pull/6596): a rank that has disconnected waits in a barrier of the
/// process manager and makes no progress for ranks that still disconnect.
bool finalize_may_hang(bool several_hosts) {
  return several_hosts && MPICH_NUMVERSION >= 40000000 && MPICH_NUMVERSION < 40200000;
}

bool process_manager_has_gone() {
  pollfd connection{process_manager(), 0, 0};
  return poll(&connection, 1, 0) == 1 && (connection.revents & (POLLHUP | POLLERR)) != 0;
}

bool tell_process_manager() {
  const int fd = process_manager();
  if (fd < 0 || !send(fd, "cmd=finalize\n")) return false;
  char answer[256];
  std::string received;
  pollfd waiting{fd, POLLIN, 0};
  while (received.find('\n') == std::string::npos && poll(&waiting, 1, answer_within_ms) == 1) {
    const ssize_t count = read(fd, answer, sizeof answer);
    if (count <= 0) break;
    received.append(answer, static_cast<std::size_t>(count));
  }
  return received.starts_with("cmd=finalize_ack");
}

/// Without RDMA, UCX 1.13 ends a process that answers the read of a rank that dies, and MPICH 4.0
/// ends the reader of a rank that dies. MPICH moves the reads of dynamic windows by its own
/// messages, whose failures do not end a process.
Reads reads() { return has_rdma() ? Reads::window : Reads::dynamic_window; }

/// MPICH moves them in their order.
std::size_t parts_at_a_time() { return std::numeric_limits<std::size_t>::max(); }

}  // namespace fast::mpi::implementation

#elif !defined(OPEN_MPI)
#error "FAST knows MPICH with its derivatives, and Open MPI; add a source like this one for another"
#endif
