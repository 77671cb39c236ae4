// What fastrun knows of its host and its program: cores, open files, the program's file.
#pragma once

#include <sys/resource.h>

#include <filesystem>
#include <string>

namespace fastrun {

// How many cores the ranks of this host share.

/// That this process may run on (its affinity), and no more than the quota of its container,
/// rounded up. `cgroups`: where a container sees its own control group, of version 1 or 2.
int usable_cores(const std::filesystem::path& cgroups = "/sys/fs/cgroup");

// How many descriptors a process may have.

/// Raised as far as it goes while fastrun lives: each rank needs two connections. The processes
/// that it starts restore it, because some programs go through all descriptors up to the limit.
class DescriptorLimit {
 public:
  DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  void restore() const;
  /// That this process may have now.
  rlim_t most() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

// The driver of NVIDIA's GPUs.

/// "580.95.05"; empty: none is loaded. `says`: the file in which the driver says its version.
std::string nvidia_driver(const std::filesystem::path& says = "/proc/driver/nvidia/version");

// The program of a job, as a file of this host.

/// Why execvp() cannot start a program of this name: "No such file or directory", "Permission
/// denied". Empty: a file is there that may be executed.
std::string why_not_startable(const std::string& program);

}  // namespace fastrun
