#include "cores.hpp"

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

}  // namespace

int usable_cores(const std::filesystem::path& cgroups) {
  const double here = std::max(1U, std::thread::hardware_concurrency());
  return static_cast<int>(std::min(here, std::ceil(cpu_quota(cgroups).value_or(here))));
}

}  // namespace fastrun
