#include "fastrun/host.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <thread>

#include "core/text.hpp"

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

DescriptorLimit::DescriptorLimit() {
  getrlimit(RLIMIT_NOFILE, &before_);
  const rlimit raised{before_.rlim_max, before_.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
}

void DescriptorLimit::restore() const { setrlimit(RLIMIT_NOFILE, &before_); }

namespace {

/// An error number; 0: the file may be executed.
int problem_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// The same of a name that is in one of `directories`. An empty one is the working directory.
int problem_in(const char* directories, const std::string& name) {
  int problem = ENOENT;
  for (const std::string_view directory : fast::split_text(directories, ':')) {
    const int here = problem_of(std::string(directory.empty() ? "." : directory) + "/" + name);
    if (here == 0) return 0;
    if (here == EACCES) problem = EACCES;
  }
  return problem;
}

}  // namespace

std::string nvidia_driver(const std::filesystem::path& says) {
  std::ifstream file(says);
  std::string word;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 ...", or "... Open
  // Kernel Module for x86_64  580.95.05  Release Build ...".
  while (file >> word) {
    const std::size_t point = word.find('.');
    if (point != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  }
  return {};
}

std::string why_not_startable(const std::string& program) {
  const char* directories = std::getenv("PATH");
  const bool is_path = program.find('/') != std::string::npos;
  if (!is_path && directories == nullptr) return {};  // the system has directories of its own
  const int problem = is_path ? problem_of(program) : problem_in(directories, program);
  return problem == 0 ? std::string() : std::strerror(problem);
}

}  // namespace fastrun
