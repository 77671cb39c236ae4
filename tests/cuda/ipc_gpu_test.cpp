// Processes on one card; without a GPU it says why and CTest counts it as skipped.
#include <cstdio>
#include <fast/cuda/device.hpp>

#include "cuda/gpu_side.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("processes on one card average as the host does, through mapped and staged slots") {
  const std::string why = cuda::inventory().why_none;
  if (!why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return;
  }
  const Group group(world());
  const auto expected = expected_rounds(group.size());
  for (const bool mapped : {true, false}) {
    GpuSide side(group, mapped);
    CHECK(run_rounds(side, group.rank()) == expected[static_cast<std::size_t>(group.rank())]);
    side.close();
  }
}

TEST_CASE("every process of the host proves that it reads the others' device memory") {
  if (!cuda::inventory().why_none.empty()) return;
  const Group group(world());
  const Deadline deadline(Seconds(30));
  cuda::DeviceRegion region = cuda::share_memory(group, 1 << 20, 0, deadline);
  for (int rank = 0; rank < group.size(); ++rank) {
    INFO(region.why_not[static_cast<std::size_t>(rank)]);
    CHECK(region.parts[static_cast<std::size_t>(rank)] != nullptr);
  }
}
