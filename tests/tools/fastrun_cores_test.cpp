#include "fastrun/host/cores.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using fastrun::usable_cores;

namespace {

const int here = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));

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
