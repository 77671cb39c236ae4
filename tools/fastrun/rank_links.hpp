// The launcher's ends of the connections that wrappers make.
#pragma once

#include <poll.h>

#include <fast/core/deadline.hpp>
#include <string>
#include <vector>

#include "channel.hpp"

namespace fastrun {

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
  std::size_t size() const { return wrappers_.size(); }
  WrapperEnd& operator[](std::size_t index) { return wrappers_[index]; }
  void erase(std::size_t index);

  bool is_empty() const { return wrappers_.empty(); }
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
