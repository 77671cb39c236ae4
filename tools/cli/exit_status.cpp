#include "cli/exit_status.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fast/core/error.hpp>
#include <string>

#include "core/message.hpp"

namespace tools {

int status_of(const std::exception& error) {
  const auto* known = dynamic_cast<const fast::Error*>(&error);
  if (known == nullptr) return failed;
  const bool is_refused =
      known->kind() == fast::ErrorKind::argument || known->kind() == fast::ErrorKind::topology;
  return is_refused ? wrong_usage : failed;
}

/// The lowest free number is the next one to be opened.
void fill_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0) return;
  }
}

int with_output(int status) {
  const bool has_failed = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !has_failed) return status;
  const int why = errno;
  std::clearerr(stdout);  // it is told once
  fast::say("error: standard output cannot be written{}{}\n", why == 0 ? "" : ": ",
            why == 0 ? "" : std::strerror(why));
  return status == 0 ? failed : status;
}

int run_program(std::string_view name, const std::function<int()>& program) {
  fill_streams();
  try {
    return with_output(program());
  } catch (const std::exception& error) {
    const std::string text = fast::printable(fast::message_of(error), fast::Newlines::keep);
    const std::string begin = std::string(name) + ": ";
    fast::say("{}{}\n", text.starts_with(begin) ? "" : begin, text);
    return with_output(status_of(error));
  }
}

}  // namespace tools
