#include "fastrun/output.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fast/core/error.hpp>
#include <filesystem>
#include <system_error>

namespace fastrun {
namespace {

constexpr std::size_t most_lines = 6;
constexpr std::size_t most_unsent = std::size_t{1} << 16;
/// A pipe of which poll() says that it is writable takes as much without waiting.
constexpr std::size_t at_once = 4096;
constexpr int most_rest = 256;  ///< parts
/// For the rest of a line. Others may print meanwhile.
constexpr fast::Seconds longest_wait{0.2};
constexpr std::size_t prefix_bytes = 1 + sizeof(std::uint32_t);

void never_wait(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

bool may_succeed_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

std::string prefix(char stream, std::size_t size_bytes) {
  const auto length = static_cast<std::uint32_t>(size_bytes);
  std::string bytes(prefix_bytes, stream);
  std::memcpy(bytes.data() + 1, &length, sizeof length);
  return bytes;
}

/// The length of the first part's text that is here; 0 if there is none.
std::size_t text_here(std::string_view bytes) {
  if (bytes.size() <= prefix_bytes) return 0;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 1, sizeof length);
  return std::min<std::size_t>(length, bytes.size() - prefix_bytes);
}

/// Appends as much of `more` to `text` as is written at once. Returns how much of it that was.
std::size_t take(std::optional<Prefixer>& prefixer, std::string_view more, std::string& text) {
  if (prefixer) return prefixer->append(more, text, at_once);
  const std::size_t taken = std::min(more.size(), at_once - std::min(at_once, text.size()));
  text += more.substr(0, taken);
  return taken;
}

int own_stream(char stream) { return stream == 'o' ? STDOUT_FILENO : STDERR_FILENO; }

}  // namespace

void LastLines::add(std::string_view text) {
  for (const char c : text) {
    if (c != '\n' && c != '\r') {
      begun_ += c;
    } else if (!begun_.empty()) {
      lines_.push_back(std::exchange(begun_, {}));
      if (lines_.size() > most_lines) lines_.pop_front();
    }
  }
}

OutputSender::OutputSender(Descriptor connection, Descriptor output, Descriptor errors)
    : connection_(std::move(connection)), pipes_{std::move(output), std::move(errors)} {
  never_wait(connection_.get());
  for (const Descriptor& pipe : pipes_) never_wait(pipe.get());
}

std::array<pollfd, 3> OutputSender::watched() const {
  const bool full = unsent_.size() >= most_unsent;
  return {pollfd{full ? -1 : pipes_[0].get(), POLLIN, 0},
          pollfd{full ? -1 : pipes_[1].get(), POLLIN, 0},
          pollfd{unsent_.empty() ? -1 : connection_.get(), POLLOUT, 0}};
}

void OutputSender::advance() {
  for (std::size_t stream = 0; stream < pipes_.size(); ++stream) {
    if (unsent_.size() < most_unsent) read_from(stream);
  }
  send();
}

void OutputSender::take_rest() {
  for (std::size_t stream = 0; stream < pipes_.size(); ++stream) {
    int parts = 0;  // a program that the rank has left behind may go on writing
    while (parts < most_rest && read_from(stream)) ++parts;
  }
  send();
}

bool OutputSender::read_from(std::size_t stream) {
  if (pipes_[stream].get() < 0) return false;
  char buffer[at_once];
  const ssize_t count = read(pipes_[stream].get(), buffer, sizeof buffer);
  if (count < 0 && may_succeed_later()) return false;
  if (count <= 0) {
    pipes_[stream] = Descriptor();
    return false;
  }
  const std::string_view text(buffer, static_cast<std::size_t>(count));
  if (streams[stream] == 'e') last_.add(text);
  (unsent_ += prefix(streams[stream], text.size())) += text;
  return true;
}

void OutputSender::send() {
  while (!unsent_.empty()) {
    const ssize_t count = ::send(connection_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (count < 0 && may_succeed_later()) return;
    if (count <= 0) {
      connection_ = Descriptor();
      unsent_.clear();
      return;
    }
    unsent_.erase(0, static_cast<std::size_t>(count));
  }
}

Prefixer::Prefixer(int rank) : prefix_("[" + std::to_string(rank) + "] ") {}

std::size_t Prefixer::append(std::string_view text, std::string& to, std::size_t most) {
  std::size_t taken = 0;
  while (taken < text.size()) {
    const char c = text[taken];
    const bool rest_of_end = c == '\n' && after_return_;             // "\r\n"
    const bool before_a_bar = c == '\r' && !in_line_;                // "\r 10 %"
    const std::size_t needed = 1 + (in_line_ ? 0 : prefix_.size());  // bytes
    if (!rest_of_end && !before_a_bar) {
      if (to.size() + needed > most) break;
      if (!in_line_) to += prefix_;
      in_line_ = c != '\n' && c != '\r';
      to += in_line_ ? c : '\n';
    }
    after_return_ = c == '\r';
    ++taken;
  }
  return taken;
}

void Outputs::add(Descriptor connection, std::string begun, int rank) {
  receivers_.push_back({std::move(connection), rank, std::move(begun), false});
  if (!prefixes_) return;
  for (BegunLine& line : receivers_.back().begun) line.prefixer.emplace(rank);
}

void Outputs::watch(std::vector<pollfd>& watched) const {
  for (const Receiver& receiver : receivers_) {
    if (text_here(receiver.bytes) > 0) {
      watched.push_back({own_stream(receiver.bytes[0]), POLLOUT, 0});
    } else {
      watched.push_back({receiver.connection.get(), POLLIN, 0});
    }
  }
}

void Outputs::advance() {
  for (Receiver& receiver : receivers_) {
    write_out(receiver);
    receive(receiver);
    write_out(receiver);
  }
  std::erase_if(receivers_, [](const Receiver& receiver) {
    return receiver.ended && text_here(receiver.bytes) == 0 && receiver.begun[0].text.empty() &&
           receiver.begun[1].text.empty();
  });
}

bool Outputs::is_blocked() const {
  return std::ranges::any_of(receivers_, [](const Receiver& receiver) {
    const bool is_begun = !receiver.begun[0].text.empty() || !receiver.begun[1].text.empty();
    return text_here(receiver.bytes) > 0 || (receiver.ended && is_begun);
  });
}

void Outputs::receive(Receiver& receiver) {
  if (receiver.ended || text_here(receiver.bytes) > 0) return;
  char buffer[at_once];
  const ssize_t count = read(receiver.connection.get(), buffer, sizeof buffer);
  if (count < 0 && may_succeed_later()) return;
  receiver.ended = count <= 0;
  if (count > 0) receiver.bytes.append(buffer, static_cast<std::size_t>(count));
}

void Outputs::write_out(Receiver& receiver) const {
  const bool is_alone = receivers_.size() == 1;
  for (std::size_t here = text_here(receiver.bytes); here > 0; here = text_here(receiver.bytes)) {
    const char stream = receiver.bytes[0];
    auto more = std::string_view(receiver.bytes).substr(prefix_bytes, here);
    const bool goes_on =
        write_lines(stream, receiver.begun[stream == 'e'], more, is_alone && !prefixes_);
    std::uint32_t rest = 0;
    std::memcpy(&rest, receiver.bytes.data() + 1, sizeof rest);
    const std::size_t done = here - more.size();
    if (log_)
      log_(receiver.rank, stream, std::string_view(receiver.bytes).substr(prefix_bytes, done));
    receiver.bytes.erase(0, prefix_bytes + done);
    if (done < rest) receiver.bytes.insert(0, prefix(stream, rest - done));
    if (!goes_on) return;
  }
  for (const char stream : streams) {
    BegunLine& begun = receiver.begun[stream == 'e'];
    std::string_view none;
    if (!is_to_be_written(receiver, begun)) continue;
    if (prefixes_ && !begun.text.empty() && !begun.text.ends_with('\n')) begun.text += '\n';
    write_lines(stream, begun, none, true);
  }
}

/// What a rank has begun, though its line has not ended.
bool Outputs::is_to_be_written(const Receiver& receiver, const BegunLine& begun) const {
  if (prefixes_ || receiver.ended) return receiver.ended;
  return receivers_.size() == 1 || begun.wait.expired();
}

/// Takes from `more` what it has written, and what waits for the end of a line. With `all`, nothing
/// waits. False: the stream accepts nothing now. What cannot be written at all is dropped.
bool Outputs::write_lines(char stream, BegunLine& begun, std::string_view& more, bool all) const {
  do {
    std::string text = begun.text;
    std::optional<Prefixer> prefixer =
        begun.prefixer;  // begun stays as it is if nothing is written
    const std::size_t taken = take(prefixer, more, text);
    const std::size_t newline = text.rfind('\n');
    std::size_t whole = newline == text.npos ? 0 : newline + 1;
    if (all || (whole == 0 && text.size() >= at_once)) whole = text.size();
    if (whole > 0) {
      if (!is_writable(own_stream(stream))) return false;
      if (before_writing_) before_writing_(own_stream(stream), {text.data(), whole});
      const ssize_t count = write(own_stream(stream), text.data(), whole);
      if (count < 0 && may_succeed_later()) return false;
      has_lost_output_ = has_lost_output_ || (count < 0 && stream == 'o');
      text.erase(0, count < 0 ? whole : static_cast<std::size_t>(count));
    }
    more.remove_prefix(taken);
    if (whole > 0 || begun.text.empty()) begun.wait = fast::Deadline(longest_wait);
    begun.text = std::move(text);
    begun.prefixer = std::move(prefixer);
  } while (!more.empty());
  return true;
}

namespace {

constexpr std::size_t longest_line = std::size_t{1} << 16;  ///< bytes

std::string file_of(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{}.log", folder, rank);
}

Descriptor open_to_append(const std::string& name) {
  constexpr int mode = 0644;
  return Descriptor(open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode));
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

RankLogs::RankLogs(std::string folder, int ranks, Say say)
    : folder_(std::move(folder)), say_(std::move(say)) {
  if (folder_.empty()) return;
  std::error_code why;
  std::filesystem::create_directories(folder_, why);
  if (!why && access(folder_.c_str(), W_OK | X_OK) != 0)
    why = std::error_code(errno, std::generic_category());
  fast::require(!why, fast::ErrorKind::argument,
                "fastrun: --log-dir: no files can be made in {} ({}); choose another folder",
                folder_, why.message());
  for (int rank = 0; rank < ranks; ++rank) files_.push_back({rank});
}

void RankLogs::add(int rank, char stream, std::string_view text) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= files_.size()) return;
  File& file = files_[static_cast<std::size_t>(rank)];
  std::string& begun = file.begun[stream == 'e'];
  begun += text;
  const std::size_t end = begun.find_last_of("\n\r");  // of a line, or of a bar drawn in place
  const std::size_t whole = end != begun.npos             ? end + 1
                            : begun.size() < longest_line ? 0
                                                          : begun.size();
  append(file, std::string_view(begun).substr(0, whole));
  begun.erase(0, whole);
}

void RankLogs::finish() {
  for (File& file : files_) {
    for (std::string& begun : file.begun)
      if (!begun.empty()) append(file, std::exchange(begun, {}) + '\n');
  }
}

void RankLogs::append(File& file, std::string_view text) {
  if (file.failed || text.empty()) return;
  const std::string name = file_of(folder_, file.rank);
  if (file.descriptor.get() < 0) file.descriptor = open_to_append(name);
  if (file.descriptor.get() >= 0 && write_all(file.descriptor.get(), text)) return;
  const std::string why = std::strerror(errno);
  file.failed = true;
  file.descriptor = Descriptor();
  if (!std::exchange(told_, true))
    say_(fmt::format("{} cannot be written ({}); it is left out from now on", name, why));
}

}  // namespace fastrun
