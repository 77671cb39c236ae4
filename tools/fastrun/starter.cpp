#include "starter.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "process_manager.hpp"
#include "start_command.hpp"

namespace fastrun {
namespace {

[[noreturn]] void become(const std::vector<std::string>& words,
                         const DescriptorLimit& descriptors) {
  descriptors.restore();
  std::signal(SIGPIPE, SIG_DFL);
  setpgid(0, 0);  // a terminal's ^C comes to fastrun, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "fastrun: %s cannot be started (%s); install %s or name it by --mpiexec\n",
               arguments[0], std::strerror(errno), own_process_manager().mpi);
  _exit(127);
}

}  // namespace

void Starter::start(const Options& options, const DescriptorLimit& descriptors) {
  const std::vector<std::string> words = start_command(options);
  name_ = words.front();
  process_ = fork();
  if (process_ == 0) become(words, descriptors);
  setpgid(process_, process_);  // as the child does: whoever comes first
}

bool Starter::has_ended() {
  int status = 0;
  if (process_ <= 0 || waitpid(process_, &status, WNOHANG) != process_) return false;
  process_ = -1;
  return true;
}

void Starter::kill() const {
  if (runs()) ::kill(-process_, SIGKILL);
}

void Starter::end() {
  if (!runs()) return;
  kill();
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

}  // namespace fastrun
