#include "fastrun/host.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using fastrun::usable_cores;

namespace {

const cpu_set_t cores_at_start = [] {
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}();
const int here = CPU_COUNT(&cores_at_start);

int cores_by_cpu_max(const std::string& text) {
  const fast::testing::TemporaryDirectory cgroups;
  std::ofstream(cgroups / "cpu.max") << text << '\n';
  return usable_cores(cgroups.path());
}

int cores_by_quota_and_period(const std::string& quota_us, const std::string& period_us) {
  const fast::testing::TemporaryDirectory cgroups;
  std::filesystem::create_directory(cgroups / "cpu");
  std::ofstream(cgroups / "cpu/cpu.cfs_quota_us") << quota_us << '\n';
  std::ofstream(cgroups / "cpu/cpu.cfs_period_us") << period_us << '\n';
  return usable_cores(cgroups.path());
}

}  // namespace

TEST_CASE("a container's quota bounds the cores, rounded up") {
  CHECK(cores_by_cpu_max("50000 100000") == 1);
  CHECK(cores_by_cpu_max("100000 100000") == 1);
  CHECK(cores_by_cpu_max("150000 100000") == std::min(here, 2));
  CHECK(cores_by_cpu_max("6400000000 100000") == here);
  CHECK(cores_by_quota_and_period("50000", "100000") == 1);
  CHECK(cores_by_quota_and_period("150000", "100000") == std::min(here, 2));
}

TEST_CASE("without a quota all cores count") {
  CHECK(cores_by_cpu_max("max 100000") == here);
  CHECK(cores_by_quota_and_period("-1", "100000") == here);
  CHECK(usable_cores("/no/such/folder") == here);
}

TEST_CASE("a driver of NVIDIA says its version, and none is none") {
  const fast::testing::TemporaryDirectory directory;
  const auto driver_by = [&](const std::string& text) {
    std::ofstream(directory / "version") << text;
    return fastrun::nvidia_driver(directory / "version");
  };
  CHECK(driver_by("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 "
                  "UTC 2024\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n") ==
        "535.183.01");
  CHECK(driver_by("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release "
                  "Build  (dvs-builder@U22)  Tue Sep 23 10:11:16 UTC 2025\n") == "580.95.05");
  CHECK(driver_by("") == "");
  CHECK(fastrun::nvidia_driver(directory / "absent") == "");
}

TEST_CASE("only cores on which this process may run count") {
  int first = 0;
  while (!CPU_ISSET(first, &cores_at_start)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const int cores = usable_cores("/no/such/folder");
  sched_setaffinity(0, sizeof cores_at_start, &cores_at_start);
  CHECK(cores == 1);
  CHECK(usable_cores("/no/such/folder") == here);
}
