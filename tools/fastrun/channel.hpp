// How fastrun and its wrappers talk: lines of text over TCP.
#pragma once

#include <fast/core/deadline.hpp>

#include <poll.h>

#include <optional>
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
  bool send(std::string line) const;
  /// Reads what is there; the whole lines of it. Empty optional: the other side has gone.
  std::optional<std::vector<std::string>> receive();
  /// The descriptor, and what has been received of a line that has not ended.
  std::pair<Descriptor, std::string> release();

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
  explicit RankLinks(bool is_on_one_host);

  int port() const { return listener_.port; }
  const std::string& token() const { return token_; }

  /// Takes a connection that waits, if there is one. Without a free descriptor, one that has not
  /// said the token makes room. False: there is none of these either (errno).
  bool accept(fast::Seconds lost_after);
  /// Closes those that have not said the token in time.
  void close_strangers();

  /// The listener, then one entry for each wrapper.
  void watch(std::vector<pollfd>& watched) const;
  std::vector<WrapperEnd>& wrappers() { return wrappers_; }
  void send(int rank, const std::string& line) const;
  /// Not to connections that have not said yet what they are. One for output must get nothing: its
  /// wrapper does not read it, so that closing it would reset it, and output on its way be lost.
  void report_ranks(const std::string& line) const;

 private:
  bool drop_a_stranger();

  std::string token_;
  Listener listener_;
  std::vector<WrapperEnd> wrappers_;
};

}  // namespace fastrun
