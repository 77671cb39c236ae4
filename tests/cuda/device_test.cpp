#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/nn/cuda/network.hpp>

#include "cuda/device/runtime.hpp"
#include "support/catch.hpp"

using namespace fast;

TEST_CASE("codes 34, 35 and 100 mean that there is no GPU, others do not") {
  for (const int code : {34, 35, 100}) {
    CHECK(cuda::means_no_gpu(code));
    CHECK_THAT(cuda::why_no_gpu(code), ContainsSubstring("no GPU here") &&
                                           ContainsSubstring("or run on the CPU") &&
                                           !ContainsSubstring("\n"));
    CHECK_THROWS_WITH(cuda::raise(code, "cudaMalloc"), cuda::why_no_gpu(code));
  }
  for (const int code : {0, 1, 2, 3, 36, 46, 101, 209, 700, 999}) {
    CHECK_FALSE(cuda::means_no_gpu(code));
  }
}

TEST_CASE("a failed call is named with its code and what to do") {
  CHECK_THROWS_WITH(cuda::raise(2, "cudaMalloc of 8 bytes"),
                    ContainsSubstring("cudaMalloc of 8 bytes failed with cudaErrorMemoryAllocation "
                                      "(2)") &&
                        ContainsSubstring("smaller batches") &&
                        ContainsSubstring("torch.cuda.empty_cache()"));
  CHECK_THROWS_WITH(cuda::raise(209, "average"), ContainsSubstring("CMAKE_CUDA_ARCHITECTURES"));
  for (const int code : {900, 901, 906, 908}) {
    CHECK_THROWS_WITH(cuda::raise(code, "average"),
                      ContainsSubstring("end the capture before the call"));
  }
  CHECK_THROWS_WITH(cuda::raise(700, "average"), ContainsSubstring("compute-sanitizer"));
}

TEST_CASE("an inventory has devices or says in one line why not") {
  const cuda::Inventory found = cuda::inventory();
  CHECK(found.devices.empty() == !found.why_none.empty());
  if (found.devices.empty()) {
    CHECK_THROWS_WITH(cuda::devices(), found.why_none);
    CHECK_THROWS_WITH(cuda::device(0), found.why_none);
  } else {
    CHECK(cuda::device(0).bus_id == found.devices[0].bus_id);
    CHECK_THROWS_WITH(cuda::device(static_cast<int>(found.devices.size())),
                      ContainsSubstring("was asked for") && ContainsSubstring("choose one of 0.."));
  }
}

TEST_CASE("versions are known without a GPU") {
  CHECK(cuda::versions().runtime >= 12000);
  CHECK(cuda::cudnn_version() >= 90000);
}

TEST_CASE("workers of a host take its devices in turn, whatever their ranks") {
  const std::vector<int> hosts{0, 1, 0, 1, 0, 0, 1};
  const std::vector<int> of_two{0, 0, 1, 1, 0, 1, 0};
  for (int rank = 0; rank < 7; ++rank) {
    CHECK(cuda::device_in_turn(rank, hosts, 2) == of_two[static_cast<std::size_t>(rank)]);
    CHECK(cuda::device_in_turn(rank, hosts, 1) == 0);
  }
  CHECK(cuda::device_in_turn(5, hosts, 4) == 3);
  for (const int rank : {-1, 7})
    CHECK_THROWS_WITH(cuda::device_in_turn(rank, hosts, 2), ContainsSubstring("hosts of 7 ranks"));
}
