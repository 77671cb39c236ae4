// Workers on two cards of one host; with fewer cards it says why and CTest counts it as skipped.
#include <cstdio>
#include <fast/cuda/device.hpp>
#include <fast/exchange/local.hpp>

#include "cuda/gpu_side.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

bool two_cards() {
  const cuda::Inventory found = cuda::inventory();
  if (found.devices.size() >= 2) return true;
  if (found.devices.empty())
    std::printf("skipped: %s\n", found.why_none.c_str());
  else
    std::printf("skipped: cuda: 1 GPU here, two of one host are required\n");
  return false;
}

/// Whether each card reads the other; else says why not. Collective.
bool readable(const Group& group, int device) {
  const Deadline deadline(Seconds(30));
  cuda::DeviceRegion region = cuda::share_memory(group, 1, device, deadline);
  std::string why;
  for (const std::string& each : region.why_not)
    if (!each.empty()) why = each;
  for (const std::string& each : group.all_gather(why, deadline, "comparing what cards read")) {
    if (each.empty()) continue;
    std::printf("mapped slots are left out: %s\n", each.c_str());
    return false;
  }
  return true;
}

/// What the values of a worker on the card of its rank become.
std::vector<float> found_by(const Group& group, bool mapped) {
  GpuSide side(group, mapped, group.rank() % 2);
  std::vector<float> found = run_rounds(side, group.rank());
  side.close();
  return found;
}

}  // namespace

TEST_CASE("processes on two cards average as the host does, through mapped and staged slots") {
  if (!two_cards()) return;
  const Group group(world());
  const auto expected = expected_rounds(group.size())[static_cast<std::size_t>(group.rank())];
  CHECK(found_by(group, false) == expected);
  if (readable(group, group.rank() % 2)) CHECK(found_by(group, true) == expected);
}

TEST_CASE("threads on two cards average as the host does, through mapped and staged slots") {
  if (!two_cards()) return;
  for (const int workers : {2, 4}) {
    std::vector<std::vector<float>> staged(static_cast<std::size_t>(workers)), mapped = staged;
    local::run(workers, [&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      staged[rank] = found_by(group, false);
      if (readable(group, group.rank() % 2)) mapped[rank] = found_by(group, true);
    });
    CAPTURE(workers);
    CHECK(staged == expected_rounds(workers));
    if (!mapped[0].empty()) CHECK(mapped == expected_rounds(workers));
  }
}
