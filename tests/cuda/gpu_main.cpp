// The main function of tests that need a GPU: without one the program says why and exits with 77,
// which CTest counts as skipped.
#include <cstdio>
#include <fast/cuda/device.hpp>

#include "support/catch_runner.hpp"

int main(int argc, char** argv) {
  const fast::cuda::Inventory found = fast::cuda::inventory();
  if (found.devices.empty()) {
    std::printf("skipped: %s\n", found.why_none.c_str());
    return 77;
  }
  return fast::testing::run_tests(argc, argv);
}
