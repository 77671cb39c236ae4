#include "fastrun/channel.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>

#include "core/numbers.hpp"

namespace fastrun {
namespace {

constexpr int least_s = 2;  ///< the kernel counts in whole seconds

void set(int connection, int level, int name, int value) {
  setsockopt(connection, level, name, &value, sizeof value);
}

}  // namespace

void fail_when_lost(int connection, fast::Seconds limit) {
  const int limit_s =
      std::max(least_s, fast::saturate<int>(std::min(1e6, std::ceil(limit.count()))));
  const int interval_s = std::clamp(limit_s / 4, 1, 10);
  set(connection, IPPROTO_TCP, TCP_KEEPIDLE, interval_s);
  set(connection, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set(connection, IPPROTO_TCP, TCP_KEEPCNT, std::max(1, limit_s / interval_s - 1));
  set(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * limit_s);  // also for data on their way
  set(connection, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Listener listen_for_ranks(bool are_on_this_host) {
  Listener listener{Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(are_on_this_host ? INADDR_LOOPBACK : INADDR_ANY);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  const bool listening = bind(listener.descriptor.get(), any, length) == 0 &&
                         listen(listener.descriptor.get(), SOMAXCONN) == 0 &&
                         getsockname(listener.descriptor.get(), any, &length) == 0;
  fast::require(listening, fast::ErrorKind::resource, "fastrun: no TCP port can be opened ({})",
                std::strerror(errno));
  listener.port = ntohs(address.sin_port);
  return listener;
}

std::string own_addresses() {
  std::string all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "127.0.0.1";
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) {
      all += std::string(text) + ",";
    }
  }
  freeifaddrs(list);
  return all + "127.0.0.1";
}

bool is_this_host(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return false;
  char text[INET_ADDRSTRLEN] = {};
  const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  const bool loopback = ntohl(address->sin_addr.s_addr) >> 24 == 127;
  inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
  freeaddrinfo(found);
  const std::string own = fmt::format(",{},", own_addresses());
  return loopback || own.find(fmt::format(",{},", text)) != std::string::npos;
}

Descriptor connect_to(std::string_view addresses, int port) {
  constexpr timeval patience{3, 0};
  while (!addresses.empty()) {
    const std::string text(addresses.substr(0, addresses.find(',')));
    addresses.remove_prefix(std::min(addresses.size(), text.size() + 1));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) continue;
    Descriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      return connection;
    }
  }
  return Descriptor();
}

bool is_writable(int descriptor) {
  pollfd one{descriptor, POLLOUT, 0};
  return poll(&one, 1, 0) == 1;
}

}  // namespace fastrun
