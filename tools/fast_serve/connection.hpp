// A client's connection, as httplib reads requests from it and writes answers to it.
#pragma once

#include <httplib.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace fast::serve {

/// Buffered. Every request has a deadline and a limit on the bytes that are read for it. Does not
/// own the socket.
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  struct Patience {
    std::chrono::milliseconds usual;
    std::chrono::milliseconds hurried;  ///< each 64 KiB that come add a second
  };

  /// `hurries` says whether others wait for this connection's thread.
  explicit Connection(int socket, std::function<bool()> hurries = {})
      : socket_(socket), hurries_(std::move(hurries)) {}

  /// Before a request: `allowance` bytes may be read until allow() raises it. The client has the
  /// patience for its request, and again for the answer.
  void begin_request(Patience patience, std::size_t allowance);
  void allow(std::size_t more) { allowance_ += more; }

  bool has_input() const { return first_ < input_.size(); }
  /// Sends what was written. False when the client does not take it.
  bool flush();
  /// Tells the client that nothing more comes, and reads for a while what it still sends: a socket
  /// that is closed before may take the answer back.
  void close_gently();

  bool is_readable() const override { return !failed_; }
  bool is_writable() const override { return !failed_; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  /// httplib refuses numbers for which it could not call select(). This class calls poll().
  socket_t socket() const override { return 0; }

 private:
  bool fill();
  bool wait_for(short events) const;
  std::chrono::milliseconds time_left() const;

  int socket_;
  std::function<bool()> hurries_;
  Clock::time_point began_{};
  Patience patience_{};
  std::size_t moved_ = 0;  ///< bytes since began_
  bool is_writing_ = false;
  std::size_t allowance_ = 0;
  bool failed_ = false;
  std::vector<char> input_;
  std::size_t first_ = 0;
  std::string output_;
};

}  // namespace fast::serve
