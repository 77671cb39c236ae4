#include <mpi.h>

#if defined(MPICH_VERSION)

#include <poll.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "mpi/host_abilities.hpp"
#include "mpi/implementation.hpp"
#include "mpi/process_manager.hpp"

namespace fast::mpi::implementation {
namespace {

constexpr int answer_within_ms = 5000;
constexpr double mega = 1e6;

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

/// Whether UCX_TLS leaves out the transport that reads the memory of other processes.
bool is_without_attach() {
  const char* text = std::getenv("UCX_TLS");
  if (text == nullptr) return false;
  const bool excludes = text[0] == '^';
  const std::vector<std::string_view> names = split_text(text + (excludes ? 1 : 0), ',');
  const bool is_named = std::ranges::any_of(names, [](std::string_view name) {
    return name == "cma" || name == "all" || name == "sm" || name == "shm";
  });
  return is_named == excludes;
}

/// Without these reads, UCX 1.13 may wait forever for a long message between ranks of a host.
bool may_wait_forever() {
  const std::optional<Started> ranks = started();
  const bool has_neighbors = ranks && ranks->here != 1;
  return has_neighbors && (is_without_attach() || !can_read_other_processes());
}

/// The size of /dev/shm is the same for all ranks, so all of them find the same.
void require_shared_memory() {
  struct statvfs found {};
  if (!is_on_one_host() || statvfs("/dev/shm", &found) != 0) return;
  if (std::getenv("UCX_TLS") != nullptr) return;  // perhaps without shared memory
  const Started self = *started();
  const double size = static_cast<double>(found.f_blocks) * static_cast<double>(found.f_frsize);
  const double needed = static_cast<double>(shared_bytes_per_rank()) * self.here;
  if (size >= needed) return;
  let_rank_0_print();
  fail(
      self.rank == 0 ? ErrorKind::resource : ErrorKind::peer_failed,
      "Environment: /dev/shm has {:.1f} MB, MPI needs {:.1f} MB for {} ranks; enlarge it (mount -o "
      "remount,size=1g /dev/shm; docker run --shm-size=1g), or start fewer ranks",
      size / mega, needed / mega, self.here);
}

}  // namespace

std::string_view name() { return "MPICH"; }

/// Of UCX 1.13: a segment of 4,292,720 bytes for received messages, and smaller ones.
std::size_t shared_bytes_per_rank() { return 4'310'000; }

/// Variables of UCX.
/// - UCX_RNDV_THRESH=1g: long messages are sent without asking the receiver first. Between hosts
///   with TCP, the receiver's answer would wait behind all data in the other direction, so both
///   directions would take turns. Within a host, see may_wait_forever().
/// - UCX_ZCOPY_THRESH=inf, for several hosts with TCP: messages are copied before they are sent.
///   Without the copy, UCX 1.13 ends the sender of a long MPI_Issend when the receiver dies
///   ("tag-sync protocol").
/// - UCX_POSIX_USE_PROC_LINK=n: ranks find each other's shared memory by its name, not through
///   /proc, which is closed to a process of another user namespace.
void prepare_transport() {
  require_shared_memory();
  const std::optional<Started> self = started();
  if (self && self->number_here == 0) remove_stale_shared_memory();
  const bool is_tcp = !is_on_one_host() && !has_rdma();
  const bool are_apart = is_in_other_user_namespace(process_manager());
  if (are_apart) setenv("UCX_POSIX_USE_PROC_LINK", "n", 0);
  if (is_tcp || are_apart || may_wait_forever()) setenv("UCX_RNDV_THRESH", "1g", 0);
  if (is_tcp) setenv("UCX_ZCOPY_THRESH", "inf", 0);
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

bool report_process_manager() {
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
