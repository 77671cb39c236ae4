// How many cores the ranks of this host share.
#pragma once

#include <filesystem>

namespace fastrun {

/// That this process may run on (its affinity), and no more than the quota of its container,
/// rounded up. `cgroups`: where a container sees its own control group, of version 1 or 2.
int usable_cores(const std::filesystem::path& cgroups = "/sys/fs/cgroup");

}  // namespace fastrun
