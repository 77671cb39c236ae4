// How fastrun and its wrappers talk: lines of text over TCP.
#pragma once

#include <fast/core/deadline.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/descriptor.hpp"

namespace fastrun {

// Notices that the host at the other end of a TCP connection is lost or that the link is cut.

/// Lets the connection fail when the other host has not answered for this time; it is rounded up
/// to a few seconds. The kernels ask and answer: a stopped process is not taken for a lost host.
void fail_when_lost(int connection, fast::Seconds limit);

using fast::Descriptor;

/// Lines in and out of a descriptor.
class Lines {
 public:
  explicit Lines(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  int descriptor() const { return descriptor_.get(); }
  /// False when the other side has gone. Newlines within are sent as spaces.
  bool send(std::string line) const {
    std::ranges::replace(line, '\n', ' ');
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t count = ::send(descriptor_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Reads what is there; the whole lines of it. Empty optional: the other side has gone.
  std::optional<std::vector<std::string>> receive() {
    char buffer[4096];
    const ssize_t count = read(descriptor_.get(), buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return std::vector<std::string>{};
    if (count <= 0) return std::nullopt;
    begun_.append(buffer, static_cast<std::size_t>(count));
    std::vector<std::string> lines;
    for (std::size_t end = begun_.find('\n'); end != std::string::npos; end = begun_.find('\n')) {
      lines.push_back(begun_.substr(0, end));
      begun_.erase(0, end + 1);
    }
    return lines;
  }

  /// The descriptor, and what has been received of a line that has not ended.
  std::pair<Descriptor, std::string> release() {
    return {std::move(descriptor_), std::move(begun_)};
  }

 private:
  Descriptor descriptor_;
  std::string begun_;
};

struct Listener {
  Descriptor descriptor;
  int port = 0;
};
/// At the loopback, or at all addresses of this machine.
Listener listen_for_ranks(bool are_on_this_host);

/// This machine's addresses, loopback last, separated by commas.
std::string own_addresses();
/// Whether a name or an address means this machine.
bool is_this_host(const std::string& name);
/// The first of the addresses that answers; Descriptor(-1) when none does.
Descriptor connect_to(std::string_view addresses, int port);

/// Whether a write of a few bytes would not block.
bool is_writable(int descriptor);

// The launcher's ends of the connections that wrappers make.

/// The other end of a wrapper.
struct WrapperEnd {
  Lines lines;
  int rank = -1;                               ///< -1: it has not said so yet
  bool trusted = false;                        ///< it has said the token
  fast::Deadline patience{fast::Seconds(10)};  ///< for the token
};

class RankLinks {
 public:
  explicit RankLinks(bool is_on_one_host)
      : token_(random_token()), listener_(listen_for_ranks(is_on_one_host)) {}

  int port() const { return listener_.port; }
  const std::string& token() const { return token_; }

  /// Takes a connection that waits, if there is one. Without a free descriptor, one that has not
  /// said the token makes room. False: there is none of these either (errno).
  bool accept(fast::Seconds lost_after) {
    const int connection =
        accept4(listener_.descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      fail_when_lost(connection, lost_after);
      wrappers_.push_back({Lines(Descriptor(connection))});
      return true;
    }
    return (errno != EMFILE && errno != ENFILE) || drop_a_stranger();
  }

  /// Closes those that have not said the token in time.
  void close_strangers() {
    std::erase_if(wrappers_,
                  [](const WrapperEnd& one) { return !one.trusted && one.patience.expired(); });
  }

  /// The listener, then one entry for each wrapper.
  void watch(std::vector<pollfd>& watched) const {
    watched.push_back({listener_.descriptor.get(), POLLIN, 0});
    for (const WrapperEnd& wrapper : wrappers_)
      watched.push_back({wrapper.lines.descriptor(), POLLIN, 0});
  }

  std::vector<WrapperEnd>& wrappers() { return wrappers_; }
  void send(int rank, const std::string& line) const {
    for (const WrapperEnd& wrapper : wrappers_)
      if (wrapper.rank == rank) wrapper.lines.send(line);
  }

  /// Not to connections that have not said yet what they are. One for output must get nothing: its
  /// wrapper does not read it, so that closing it would reset it, and output on its way be lost.
  void report_ranks(const std::string& line) const {
    for (const WrapperEnd& wrapper : wrappers_)
      if (wrapper.rank >= 0) wrapper.lines.send(line);
  }

 private:
  static std::string random_token() {
    std::random_device device;
    return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
  }

  /// The one that has waited for longest.
  bool drop_a_stranger() {
    const auto stranger =
        std::ranges::find_if(wrappers_, [](const WrapperEnd& one) { return !one.trusted; });
    if (stranger == wrappers_.end()) return false;
    wrappers_.erase(stranger);
    return true;
  }

  std::string token_;
  Listener listener_;
  std::vector<WrapperEnd> wrappers_;
};

}  // namespace fastrun
