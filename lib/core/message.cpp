#include "core/message.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <optional>
#include <stdexcept>

#include "core/descriptor.hpp"
#include "core/host.hpp"

namespace fast {
namespace {

namespace fs = std::filesystem;

struct Character {
  char32_t code;
  std::size_t bytes;
};

/// The character that begins at `at`; none where the bytes there are not UTF-8 in its shortest
/// form.
std::optional<Character> character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return Character{first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < bytes) return std::nullopt;
  char32_t code = first & (0x7fU >> bytes);
  for (std::size_t k = 1; k < bytes; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(k) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[bytes] || code > 0x10ffff || surrogate) return std::nullopt;
  return Character{code, bytes};
}

bool turns_direction(char32_t code) {
  return code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_line_break(char32_t code) { return code == 0x2028 || code == 0x2029; }

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

std::string escaped(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  const auto value = static_cast<unsigned>(code);
  return code < 0x100 ? fmt::format("\\x{:02x}", value) : fmt::format("\\u{:04x}", value);
}

std::string why_not(const fs::path& path, int access_mode) {
  return access(path.c_str(), access_mode) == 0 ? "" : std::strerror(errno);
}

}  // namespace

std::string printable(std::string_view text, Newlines newlines) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<Character> found = character_at(text, at);
    const char32_t code = found ? found->code : static_cast<unsigned char>(text[at]);
    const std::size_t bytes = found ? found->bytes : 1;
    const bool kept = code == '\n' && newlines == Newlines::keep;
    if (found && (kept || !(is_control(code) || turns_direction(code) || is_line_break(code)))) {
      shown += text.substr(at, bytes);
    } else {
      shown += escaped(code);
    }
    at += bytes;
  }
  return shown;
}

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::optional<Character> found = character_at(text, at);
    if (!found) return false;
    at += found->bytes;
  }
  return true;
}

std::string why_unreadable_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "there is no such file";
  if (error) return error.message();
  if (fs::is_directory(status)) return "it is a directory";
  if (!fs::is_regular_file(status)) return "it is not a regular file";
  return why_not(path, R_OK);
}

std::string why_unreadable_directory(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "there is no such directory";
  if (error) return error.message();
  if (!fs::is_directory(status)) return "it is not a directory";
  return why_not(path, R_OK | X_OK);
}

std::string message_of(const std::exception& error) {
  if (const auto* file = dynamic_cast<const fs::filesystem_error*>(&error)) {
    return fmt::format("{}: {}; check the path, its permissions and the free space of the disk",
                       printable(file->path1().string()), file->code().message());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return fmt::format(
        "memory is used up: an allocation failed, this process holds {}, {} are free; use a "
        "smaller model, batch size or number of workers, or lift the limit (ulimit -v)",
        size_text(static_cast<double>(resident_memory_bytes())),
        size_text(static_cast<double>(available_memory_bytes())));
  }
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return "a size is larger than any memory; use a smaller model, batch size or number of workers";
  }
  return printable(error.what(), Newlines::keep);
}

namespace {

/// A pipe of which poll() says that it is writable takes as much without waiting.
constexpr std::size_t at_once = 4096;

std::atomic<bool> is_stuck{false};  ///< the last text has waited in vain

/// A descriptor whose writes do not wait. The flag of the stream's own descriptor is shared with
/// other processes: a pipe or a terminal is opened once more. Other files do not wait.
class Writer {
 public:
  explicit Writer(int stream) : stream_(stream), own_(open_again(stream)) {}
  int get() const { return own_.is_open() ? own_.get() : stream_; }

 private:
  static int open_again(int stream) {
    struct stat found {};
    if (fstat(stream, &found) != 0) return -1;
    if (!S_ISFIFO(found.st_mode) && isatty(stream) == 0) return -1;
    const std::string path = "/proc/self/fd/" + std::to_string(stream);
    return open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  }
  int stream_;
  Descriptor own_;
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
