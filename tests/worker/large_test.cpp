// A model of 1.1 x 2^32 bytes. Needs 18 GiB of memory: run with  ctest --preset ci -C large -R
// large
#include <algorithm>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <fstream>

#include "support/catch.hpp"

using namespace fast;

namespace {

std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

TEST_CASE("a model beyond 4 GiB trains") {
  constexpr std::size_t count = ((std::size_t{1} << 32) / 10 * 11) / sizeof(float);
  constexpr std::size_t needed_bytes = 4 * count * sizeof(float) + (std::size_t{1} << 29);
  if (available_bytes() < needed_bytes) {
    WARN("skipped: " << available_bytes() << " bytes of memory are free, " << needed_bytes
                     << " are needed: the model and three slots");
    return;
  }
  local::run(1, [](const Group& group) {
    std::vector<float> x(count);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))});
    CHECK(worker.layout().size_bytes() == count * sizeof(float));
    for (int round = 1; round <= 2; ++round) {
      worker.step([&] {
        for (std::size_t e = 0; e < count; e += 1 << 20) x[e] += 1;
        x.back() += 1;
      });
      CHECK(x.back() == static_cast<float>(round));
      CHECK(std::count(x.begin(), x.end(), static_cast<float>(round)) ==
            static_cast<std::ptrdiff_t>((count - 1) / (1 << 20) + 2));
      CHECK(std::count(x.begin(), x.end(), 0.0F) ==
            static_cast<std::ptrdiff_t>(count - (count - 1) / (1 << 20) - 2));
    }
  });
}
