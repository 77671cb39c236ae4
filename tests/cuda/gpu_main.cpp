// The main function of tests that need a GPU: without one the program says why and exits with 77,
// which CTest counts as skipped.
#include <cstdio>
#include <cstdlib>
#include <fast/cuda/device.hpp>

#include "support/catch_runner.hpp"
#include "support/temporary_directory.hpp"

int main(int argc, char** argv) {
  const fast::cuda::Inventory found = fast::cuda::inventory();
  if (found.devices.empty()) {
    std::printf("skipped: %s\n", found.why_none.c_str());
    return 77;
  }
  const fast::testing::TemporaryDirectory cache;  // the user's own keeps what it has
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  return fast::testing::run_tests(argc, argv);
}
