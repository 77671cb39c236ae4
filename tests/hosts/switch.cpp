// A switch in user space between TAP devices: links with a rate, a delay, jitter and loss that
// change while it runs. Kernels without netem cannot do that.
//   switch SOCKET TAP...            makes the devices and forwards frames until SIGTERM. The first
//                                   device is the machine's (port 0), the others are the hosts'.
//   switch --ask SOCKET WORD...     changes links of the switch at SOCKET:
//       link I J SETTING...         both directions between hosts I and J; see link.hpp
//       link all SETTING...         between all hosts
//       host I down|up              all frames of host I, to the machine too
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "hosts/link.hpp"

namespace {

using hosts::Link;
using hosts::LinkSettings;

constexpr std::size_t longest_frame = 65'536, address_bytes = 6;

[[noreturn]] void give_up(const std::string& what) {
  throw std::runtime_error("switch: " + what + ": " + std::strerror(errno));
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int open_tap(const std::string& name) {
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tap < 0) give_up("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name.c_str());
  if (ioctl(tap, TUNSETIFF, &request) != 0) give_up("device " + name);
  return tap;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
  return address;
}

struct Frame {
  double leaves_s;
  std::uint64_t number;  ///< of frames that leave at once, the first that came goes first
  std::size_t port;
  std::string bytes;
  bool operator<(const Frame& other) const {
    return std::pair(leaves_s, number) > std::pair(other.leaves_s, other.number);
  }
};

/// The ports, which hosts they lead to, and the links between them.
class Fabric {
 public:
  explicit Fabric(std::vector<int> taps) : taps_(std::move(taps)), up_(taps_.size(), true) {
    for (std::size_t i = 0; i < taps_.size() * taps_.size(); ++i) links_.emplace_back(i + 1);
  }

  void forward(std::size_t from) {
    ssize_t size = 0;
    while ((size = read(taps_[from], buffer_, sizeof buffer_)) > 0) {
      const auto bytes = static_cast<std::size_t>(size);
      if (bytes < 2 * address_bytes || !up_[from]) continue;
      places_[std::string(buffer_ + address_bytes, address_bytes)] = from;
      const auto known = places_.find(std::string(buffer_, address_bytes));
      for (std::size_t to = 0; to < taps_.size(); ++to) {
        if (to != from && (known == places_.end() || known->second == to)) send(from, to, bytes);
      }
    }
  }

  /// Sends what is due. When the next frame is: 0 if none is there.
  double deliver() {
    const double time_s = now();
    while (!waiting_.empty() && waiting_.top().leaves_s <= time_s) {
      const Frame& frame = waiting_.top();
      if (up_[frame.port]) write_frame(frame.port, frame.bytes.data(), frame.bytes.size());
      waiting_.pop();
    }
    return waiting_.empty() ? 0 : waiting_.top().leaves_s;
  }

  /// What is wrong with the request, or "ok".
  std::string change(const std::string& request) {
    std::istringstream words(request);
    std::string what, first, second;
    words >> what >> first;
    if (what == "link" && first == "all") return change_links(words, 0, 0);
    words >> second;
    const std::size_t i = host(first), j = host(second);
    if (what == "link" && i != 0 && j != 0 && i != j) return change_links(words, i, j);
    if (what == "host" && i != 0 && (second == "down" || second == "up")) {
      up_[i] = second == "up";
      return "ok";
    }
    return "\"" + request + "\": link I J SETTING..., link all SETTING... or host I down|up is " +
           "required, with hosts 1 to " + std::to_string(taps_.size() - 1);
  }

 private:
  Link& link(std::size_t from, std::size_t to) { return links_[from * taps_.size() + to]; }

  std::size_t host(const std::string& text) const {
    const unsigned long number = std::strtoul(text.c_str(), nullptr, 10);
    return number < taps_.size() ? number : 0;
  }

  void send(std::size_t from, std::size_t to, std::size_t bytes) {
    const double time_s = now();
    const auto leaves_s = link(from, to).leaves_at(time_s, bytes);
    if (!leaves_s || !up_[to]) return;
    if (*leaves_s <= time_s) return write_frame(to, buffer_, bytes);
    waiting_.push({*leaves_s, ++frames_, to, std::string(buffer_, bytes)});
  }

  void write_frame(std::size_t port, const char* bytes, std::size_t size) const {
    // A device whose queue is full loses the frame, as a network does.
    if (write(taps_[port], bytes, size) < 0 && errno != EAGAIN && errno != EIO && errno != ENOBUFS)
      give_up("port " + std::to_string(port));
  }

  std::string change_links(std::istringstream& words, std::size_t i, std::size_t j) {
    for (std::string word; words >> word;) {
      for (std::size_t from = 1; from < taps_.size(); ++from) {
        for (std::size_t to = 1; to < taps_.size(); ++to) {
          const bool meant = i == 0 || (from == i && to == j) || (from == j && to == i);
          const std::string wrong = meant ? hosts::change(word, link(from, to).settings) : "";
          if (!wrong.empty()) return wrong;
        }
      }
    }
    return "ok";
  }

  std::vector<int> taps_;
  std::vector<bool> up_;
  std::deque<Link> links_;
  std::map<std::string, std::size_t> places_;  ///< ports by address
  std::priority_queue<Frame> waiting_;
  std::uint64_t frames_ = 0;
  char buffer_[longest_frame];
};

/// Answers one request.
void answer(int listener, Fabric& fabric) {
  const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0) return;
  char request[1024] = {};
  const ssize_t size = read(connection, request, sizeof request - 1);
  const std::string reply = size > 0 ? fabric.change(request) : "an empty request";
  if (send(connection, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) perror("switch: a reply");
  close(connection);
}

int listen_at(const std::string& path) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(path);
  unlink(path.c_str());
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 16) != 0)
    give_up(path);
  return listener;
}

int wait_for_end() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

void watch(int epoll, int descriptor, std::uint64_t number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) give_up("epoll");
}

void set_timer(int timer, double time_s) {
  itimerspec when{};
  double whole = 0;
  when.it_value.tv_nsec = static_cast<long>(1e9 * std::modf(time_s, &whole));
  when.it_value.tv_sec = static_cast<time_t>(whole);
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

int serve(const std::string& socket, const std::vector<std::string>& names) {
  std::vector<int> taps;
  for (const std::string& name : names) taps.push_back(open_tap(name));
  Fabric fabric(taps);
  const int listener = listen_at(socket), end = wait_for_end();
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const std::size_t ports = taps.size();
  for (std::size_t port = 0; port < ports; ++port) watch(epoll, taps[port], port);
  watch(epoll, listener, ports);
  watch(epoll, timer, ports + 1);
  watch(epoll, end, ports + 2);
  for (epoll_event events[16];;) {
    const int count = epoll_wait(epoll, events, 16, -1);
    if (count < 0 && errno != EINTR) give_up("epoll");
    for (int i = 0; i < count; ++i) {
      const std::size_t number = events[i].data.u64;
      if (number < ports) fabric.forward(number);
      if (number == ports) answer(listener, fabric);
      std::uint64_t expirations = 0;
      if (number == ports + 1 && read(timer, &expirations, sizeof expirations) < 0) continue;
      if (number == ports + 2) return unlink(socket.c_str());
    }
    set_timer(timer, fabric.deliver());
  }
}

int ask(const std::string& socket_path, const std::vector<std::string>& words) {
  std::string request;
  for (const std::string& word : words) request += word + " ";
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(socket_path);
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    give_up(socket_path);
  char reply[1024] = {};
  if (send(connection, request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
      read(connection, reply, sizeof reply - 1) <= 0)
    give_up(socket_path);
  if (std::string(reply) == "ok") return 0;
  std::fprintf(stderr, "switch: %s\n", reply);
  return 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() > 2 && words[0] == "--ask")
    return ask(words[1], {words.begin() + 2, words.end()});
  if (words.size() > 2) return serve(words[0], {words.begin() + 1, words.end()});
  std::fprintf(stderr, "switch SOCKET TAP... | switch --ask SOCKET WORD...\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
