#include <fast/exchange/local.hpp>

#include "cuda/gpu_side.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("two and four threads on one card average as the host does, bit for bit") {
  for (const bool mapped : {true, false}) {
    for (const int workers : {2, 4}) {
      std::vector<std::vector<float>> found(static_cast<std::size_t>(workers));
      local::run(workers, [&](const Group& group) {
        GpuSide side(group, mapped);
        found[static_cast<std::size_t>(group.rank())] = run_rounds(side, group.rank());
        side.close();
      });
      CAPTURE(workers, mapped);
      CHECK(found == expected_rounds(workers));
    }
  }
}
