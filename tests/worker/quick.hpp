// What scenarios share: options of a Worker with own initial weights and no long waits.
#pragma once

#include <algorithm>
#include <fast/worker/worker.hpp>
#include <vector>

namespace fast::testing {

inline WorkerOptions quick() {
  WorkerOptions options;
  options.initial = Initial::as_is;
  options.deadline = Seconds(100);
  return options;
}

inline bool several_hosts(const Group& group) {
  const auto hosts = group.hosts();
  return std::any_of(hosts.begin(), hosts.end(), [&](int host) { return host != hosts.front(); });
}

}  // namespace fast::testing
