#include "session.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fast/core/error.hpp>

namespace fastrun {

int in_own_session(const std::function<int()>& work) {
  const pid_t child = fork();
  fast::require(child >= 0, fast::ErrorKind::resource, "fastrun: no process ({})",
                std::strerror(errno));
  if (child == 0) {
    setsid();
    return work();
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_IGN);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace fastrun
