#include "seats/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

namespace seats {
namespace {

[[noreturn]] void become(std::vector<std::string>& words, const std::string& log) {
  setpgid(0, 0);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT, 0644);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

/// fastrun ends its ranks when it is interrupted twice.
void end(pid_t child) {
  for (int k = 0; k < 2; ++k) {
    kill(-child, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  kill(-child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace

int run_to_the_end(std::vector<std::string> words, const std::string& log, fast::Seconds limit) {
  const pid_t child = fork();
  if (child == 0) become(words, log);
  for (const fast::Deadline deadline(limit); !deadline.expired();) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  end(child);
  return -1;
}

void suspend(double seconds) {
  const std::string command =
      fmt::format("(sleep {}; kill -CONT {}) >/dev/null 2>&1 &", seconds, getpid());
  if (std::system(command.c_str()) == 0) raise(SIGSTOP);
}

}  // namespace seats
