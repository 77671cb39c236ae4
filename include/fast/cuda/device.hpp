// The GPUs of this machine, or the reason why there is none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fast::cuda {

struct DeviceInfo {
  int index;  ///< as CUDA counts them, after CUDA_VISIBLE_DEVICES
  std::string name;
  int major, minor;  ///< compute capability; kernels are built for 8.0 and later
  int multiprocessors;
  std::size_t memory_bytes;
  std::string bus_id;  ///< "0000:3b:00.0": the same card in every process of a host
};

/// The devices. `why_none` is empty exactly if there are devices.
struct Inventory {
  std::vector<DeviceInfo> devices;
  std::string why_none;  ///< one line that says what was found and what to do
};

/// Looks for GPUs. CUDA's codes 35, 34 and 100 (no driver, a stub of the driver, no device) mean
/// that there is none. Throws Error(resource) on other codes.
Inventory inventory();

/// The devices. Throws Error(resource) with Inventory::why_none if there are none.
std::vector<DeviceInfo> devices();

/// Returns the device of that index. Throws Error(resource) if there are no GPUs or if this one is
/// too old for the kernels. Throws Error(argument) with the valid indices on another index.
DeviceInfo device(int index);

/// Returns the device for worker `rank` if the workers of a host share its devices: in turn, by
/// rank. hosts[r] is the host of rank r. Throws Error(argument) on a rank without a host.
int device_in_turn(int rank, const std::vector<int>& hosts, int device_count);

/// CUDA versions such as 13000 for 13.0, and 0 for a missing driver.
struct Versions {
  int runtime = 0, driver = 0;
};
Versions versions();

}  // namespace fast::cuda
