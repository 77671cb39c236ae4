#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>

#include "cuda/device/runtime.hpp"

namespace fast::cuda {
namespace {

constexpr int oldest_major = 8;  // of the kernels

DeviceInfo describe(int index) {
  cudaDeviceProp found;
  check(cudaGetDeviceProperties(&found, index), "cudaGetDeviceProperties");
  std::array<char, 32> bus_id{};
  check(cudaDeviceGetPCIBusId(bus_id.data(), bus_id.size(), index), "cudaDeviceGetPCIBusId");
  return {index,
          found.name,
          found.major,
          found.minor,
          found.multiProcessorCount,
          found.totalGlobalMem,
          bus_id.data()};
}

/// The devices do not change during a process, and CUDA reads every property anew each time.
const std::vector<DeviceInfo>& known_devices() {
  static const std::vector<DeviceInfo> all = [] {
    Inventory found = inventory();
    if (found.devices.empty()) throw Error(ErrorKind::resource, found.why_none);
    return std::move(found.devices);
  }();
  return all;
}

}  // namespace

Inventory inventory() {
  int count = 0;  // CUDA does not write it without a driver
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (means_no_gpu(code)) {
    cudaGetLastError();  // clear it: a later call must not report it
    return {{}, why_no_gpu(code)};
  }
  check(code, "cudaGetDeviceCount");
  if (count == 0) return {{}, why_no_gpu(cudaErrorNoDevice)};
  Inventory found;
  for (int index = 0; index < count; ++index) found.devices.push_back(describe(index));
  return found;
}

std::vector<DeviceInfo> devices() { return known_devices(); }

DeviceInfo device(int index) {
  const std::vector<DeviceInfo>& all = known_devices();
  require(index >= 0 && index < static_cast<int>(all.size()), ErrorKind::argument,
          "cuda: device {} was asked for, there {}; choose one of 0..{}", index,
          all.size() == 1 ? "is 1" : fmt::format("are {}", all.size()), all.size() - 1);
  const DeviceInfo& chosen = all[static_cast<std::size_t>(index)];
  require(chosen.major >= oldest_major, ErrorKind::resource,
          "cuda: device {} ({}) has compute capability {}.{}, {}.0 or later is required; choose "
          "another device, or run on the CPU",
          index, chosen.name, chosen.major, chosen.minor, oldest_major);
  return chosen;
}

int device_in_turn(int rank, const std::vector<int>& hosts, int device_count) {
  require(rank >= 0 && rank < static_cast<int>(hosts.size()), ErrorKind::argument,
          "cuda: the device of rank {} was asked for, hosts of {} ranks are given", rank,
          hosts.size());
  const auto own = hosts.begin() + rank;
  return static_cast<int>(std::count(hosts.begin(), own, *own)) % device_count;
}

Versions versions() {
  Versions found;
  check(cudaRuntimeGetVersion(&found.runtime), "cudaRuntimeGetVersion");
  if (cudaDriverGetVersion(&found.driver) != cudaSuccess) found.driver = 0;
  return found;
}

}  // namespace fast::cuda
