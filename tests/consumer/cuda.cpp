#include <fast/cuda/device.hpp>

int main() {
  const auto found = fast::cuda::inventory();
  const bool told = found.devices.empty() != found.why_none.empty();
  return told && fast::cuda::versions().runtime >= 12000 ? 0 : 1;
}
