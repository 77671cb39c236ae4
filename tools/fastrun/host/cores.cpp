#include "cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <thread>

namespace fastrun {
namespace {

/// Time on all cores in a time; none: as much as there is.
std::optional<double> cpu_quota(const std::filesystem::path& cgroups) {
  double time = 0, period = 0;
  if (!(std::ifstream(cgroups / "cpu.max") >> time >> period)) {
    std::ifstream(cgroups / "cpu/cpu.cfs_quota_us") >> time;
    std::ifstream(cgroups / "cpu/cpu.cfs_period_us") >> period;
  }
  if (time <= 0 || period <= 0) return std::nullopt;
  return time / period;
}

/// Within what a batch system, taskset or a cpuset allows.
int allowed_cores() {
  cpu_set_t affinity;
  const int of_machine = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (sched_getaffinity(0, sizeof affinity, &affinity) != 0) return of_machine;
  return std::clamp(CPU_COUNT(&affinity), 1, of_machine);
}

}  // namespace

int usable_cores(const std::filesystem::path& cgroups) {
  const double here = allowed_cores();
  return static_cast<int>(std::min(here, std::ceil(cpu_quota(cgroups).value_or(here))));
}

}  // namespace fastrun
