#include <sys/signalfd.h>

#include <csignal>

#include "fastrun/fastrun.hpp"

namespace fastrun {
namespace {

/// As nohup leaves SIGHUP. Found out before the constructors of libraries, one of which (UCX) takes
/// over that signal.
bool hang_up_is_ignored = false;

void look_at_hang_up(int, char**, char**) {
  struct sigaction action {};
  hang_up_is_ignored = sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const look_first)(int, char**,
                                                                       char**) = look_at_hang_up;

}  // namespace

fast::Descriptor signals_to_hear() {
  sigset_t heard;
  sigemptyset(&heard);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU})
    sigaddset(&heard, signal);
  if (hang_up_is_ignored) {
    std::signal(SIGHUP, SIG_IGN);
  } else {
    sigaddset(&heard, SIGHUP);
  }
  sigprocmask(SIG_BLOCK, &heard, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // who reads the output may leave; the ranks go on
  return fast::Descriptor(signalfd(-1, &heard, SFD_CLOEXEC));
}

}  // namespace fastrun
