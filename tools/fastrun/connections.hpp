// The processes by which mpiexec reaches hosts: ssh, or its daemon on this host. hydra waits on
// when one of them fails.
#pragma once

#include <sys/types.h>

#include <fast/core/deadline.hpp>
#include <optional>
#include <string>
#include <utility>

namespace fastrun {

class Connections {
 public:
  /// `hosts`: names separated by commas, as for --hosts; empty: unknown.
  explicit Connections(std::string hosts) : hosts_(std::move(hosts)) {}

  /// "ssh to node1 ended with status 255": of a child of mpiexec that has failed, and that mpiexec
  /// has not asked for within a second. mpiexec -1: there is none.
  std::optional<std::string> failure(pid_t mpiexec, fast::Clock::time_point now);

 private:
  std::string hosts_;
  pid_t failed_ = -1;  ///< at the last look
  fast::Clock::time_point looked_{};
};

/// The host of the k-th process that hydra starts: it has one for hosts of the same name in a row.
std::string host_at(std::size_t k, const std::string& hosts);

}  // namespace fastrun
