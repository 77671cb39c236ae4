#include <fast/cuda/accelerator.hpp>

#include "worker/device_rounds.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

std::shared_ptr<Accelerator> on_card(int) { return cuda::accelerator(0, Seconds(30)); }

}  // namespace

TEMPLATE_TEST_CASE("workers on one card go the rounds of workers on the host, bit for bit", "",
                   float, double) {
  const int workers = GENERATE(2, 4);
  check_device_rounds<TestType>(on_card, workers);
}

TEST_CASE("workers on a card and on the host average with each other") {
  check_device_rounds<float>([](int rank) { return rank % 2 == 1 ? on_card(rank) : nullptr; }, 3);
}
