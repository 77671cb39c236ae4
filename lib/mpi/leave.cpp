#include "mpi/leave.hpp"

#include <mpi.h>
#include <poll.h>
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

}  // namespace

bool tell_process_manager() {
  const char* descriptor = std::getenv("PMI_FD");
  if (descriptor == nullptr) return false;
  const int fd = std::atoi(descriptor);
  constexpr std::string_view request = "cmd=finalize\n";
  if (write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
    return false;
  }
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
  if (finalize_may_hang && several_hosts && tell_process_manager()) return;
  MPI_Finalize();
}

}  // namespace fast::mpi
