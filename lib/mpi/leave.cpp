#include "mpi/leave.hpp"

#include <mpi.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace fast::mpi {
namespace {

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000 && MPICH_NUMVERSION < 40200000
constexpr bool finalize_may_hang = true;
#else
constexpr bool finalize_may_hang = false;
#endif
constexpr int answer_within_ms = 5000;

/// -1 if there is none.
int process_manager() {
  const char* descriptor = std::getenv("PMI_FD");
  return descriptor == nullptr ? -1 : std::atoi(descriptor);
}

bool process_manager_has_gone() {
  pollfd connection{process_manager(), 0, 0};
  return poll(&connection, 1, 0) == 1 && (connection.revents & (POLLHUP | POLLERR)) != 0;
}

/// Without SIGPIPE if the process manager has gone.
bool send(int fd, std::string_view text) {
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace

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

void leave(bool several_hosts) {
  if (process_manager_has_gone()) return;
  if (finalize_may_hang && several_hosts && tell_process_manager()) return;
  MPI_Finalize();
}

}  // namespace fast::mpi
