#include <fast/cuda/device.hpp>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("every device has memory, multiprocessors and a place on the bus of its own") {
  const auto devices = cuda::devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    CHECK(devices[i].index == static_cast<int>(i));
    CHECK(devices[i].memory_bytes > 0);
    CHECK(devices[i].multiprocessors > 0);
    for (std::size_t j = 0; j < i; ++j) CHECK(devices[i].bus_id != devices[j].bus_id);
  }
}

TEST_CASE("the driver serves the runtime") {
  const cuda::Versions found = cuda::versions();
  CHECK(found.driver / 1000 >= found.runtime / 1000);
}
