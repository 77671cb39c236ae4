#include "core/say.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <string>

namespace fast {
namespace {

/// A pipe of which poll() says that it is writable takes as much without waiting.
constexpr std::size_t at_once = 4096;

std::atomic<bool> is_stuck{false};  ///< the last text has waited in vain

/// A descriptor whose writes do not wait. The flag of the stream's own descriptor is shared with
/// other processes: a pipe or a terminal is opened once more. Other files do not wait.
class Writer {
 public:
  explicit Writer(int stream) : stream_(stream), own_(open_again(stream)) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    if (own_ >= 0) close(own_);
  }
  int get() const { return own_ >= 0 ? own_ : stream_; }

 private:
  static int open_again(int stream) {
    struct stat found {};
    if (fstat(stream, &found) != 0) return -1;
    if (!S_ISFIFO(found.st_mode) && isatty(stream) == 0) return -1;
    const std::string path = "/proc/self/fd/" + std::to_string(stream);
    return open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  }
  int stream_, own_;
};

/// Within its scope, a write without a reader fails and sends this process no SIGPIPE.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    const timespec no_time{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &no_time);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

bool accepts(int descriptor, Seconds patience) {
  pollfd watched{descriptor, POLLOUT, 0};
  const auto wait_ms = static_cast<int>(std::clamp(patience.count(), 0.0, 60.0) * 1000);
  return poll(&watched, 1, wait_ms) > 0;
}

}  // namespace

void write_or_drop(std::FILE* to, std::string_view text, Seconds patience) noexcept try {
  const WithoutSigpipe guard;
  std::fflush(to);
  const Writer writer(fileno(to));
  const Deadline deadline(is_stuck ? Seconds(0) : patience);
  while (!text.empty()) {
    const Seconds left = std::max(Seconds(0), patience - Seconds(deadline.elapsed_s()));
    if (!accepts(writer.get(), is_stuck ? Seconds(0) : left)) {
      is_stuck = is_stuck || patience > Seconds(0);
      return;
    }
    const ssize_t count = write(writer.get(), text.data(), std::min(text.size(), at_once));
    if (count < 0 && (errno == EINTR || errno == EAGAIN) && !deadline.expired()) continue;
    if (count < 0) return;
    is_stuck = false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
} catch (const std::exception&) {  // no memory
}

}  // namespace fast
