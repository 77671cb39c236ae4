#include "keep_alive.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>

#include "core/saturate.hpp"

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

}  // namespace fastrun
