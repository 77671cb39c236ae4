#include "fast_serve/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace fast::serve {
namespace {

constexpr std::size_t input_bytes = std::size_t{64} << 10, output_bytes = std::size_t{256} << 10;
constexpr std::chrono::milliseconds goodbye{1000};
/// How long a wait does not notice that others have come to wait.
constexpr std::chrono::milliseconds look{100};
/// What a client sends at least if others wait.
constexpr std::size_t hurried_bytes_per_ms = (std::size_t{64} << 10) / 1000;

}  // namespace

void Connection::begin_request(Patience patience, std::size_t allowance) {
  began_ = Clock::now();
  patience_ = patience;
  is_writing_ = false;
  moved_ = input_.size() - first_;
  allowance_ = allowance;
}

std::chrono::milliseconds Connection::time_left() const {
  using std::chrono::milliseconds;
  milliseconds patience = patience_.usual;
  if (hurries_ && hurries_()) {
    const milliseconds earned(moved_ / hurried_bytes_per_ms);
    patience = std::min(patience, patience_.hurried + earned);
  }
  return patience - std::chrono::duration_cast<milliseconds>(Clock::now() - began_);
}

bool Connection::wait_for(short events) const {
  for (;;) {
    const auto left = time_left();
    if (left.count() <= 0) return false;
    pollfd wanted{socket_, events, 0};
    const int found = poll(&wanted, 1, static_cast<int>(std::min(left, look).count()));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

/// More input; false at its end, and after the deadline or the allowance.
bool Connection::fill() {
  if (allowance_ == 0 || !wait_for(POLLIN)) return false;
  input_.resize(std::min(input_bytes, allowance_));
  first_ = 0;
  ssize_t got = 0;
  do {
    got = recv(socket_, input_.data(), input_.size(), 0);
  } while (got < 0 && errno == EINTR);
  input_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  moved_ += input_.size();
  return got > 0;
}

/// A client that sends no more may still get an answer.
ssize_t Connection::read(char* to, size_t size) {
  if (!has_input() && (!flush() || !fill())) return -1;
  is_writing_ = false;
  const std::size_t taken = std::min({size, input_.size() - first_, allowance_});
  if (taken == 0) return -1;
  std::memcpy(to, input_.data() + first_, taken);
  first_ += taken;
  allowance_ -= taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::write(const char* from, size_t size) {
  if (failed_) return -1;
  if (!is_writing_) {  // the time that the answer took is not the client's
    is_writing_ = true;
    began_ = Clock::now();
    moved_ = 0;
  }
  output_.append(from, size);
  if (output_.size() >= output_bytes && !flush()) return -1;
  return static_cast<ssize_t>(size);
}

bool Connection::flush() {
  std::size_t sent = 0;
  while (sent < output_.size()) {
    const ssize_t done =
        send(socket_, output_.data() + sent, output_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      sent += static_cast<std::size_t>(done);
      moved_ += static_cast<std::size_t>(done);
      continue;
    }
    const bool is_full = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (done < 0 && is_full && wait_for(POLLOUT)) continue;
    failed_ = true;
    return false;
  }
  output_.clear();
  return true;
}

void Connection::close_gently() {
  shutdown(socket_, SHUT_WR);
  began_ = Clock::now();
  patience_ = {goodbye, goodbye};
  moved_ = 0;
  std::array<char, 4096> ignored{};
  while (wait_for(POLLIN) && recv(socket_, ignored.data(), ignored.size(), 0) > 0) {
  }
}

}  // namespace fast::serve
