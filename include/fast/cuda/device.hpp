// Which GPUs there are, and why there is none.
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

/// What was found; `why_none` is empty exactly when there are devices.
struct Inventory {
  std::vector<DeviceInfo> devices;
  std::string why_none;  ///< one line: what was found and what to do
};

/// Looks for GPUs. No driver, a stub of it and no device (CUDA's codes 35, 34 and 100) all mean
/// that there is none; throws Error(resource) on what means something else.
Inventory inventory();

/// The devices; throws Error(resource) with Inventory::why_none when there are none.
std::vector<DeviceInfo> devices();

/// The device of that index. Throws Error(resource) when there are no GPUs or it is too old for the
/// kernels, Error(argument) with the indices there are when it is none of them.
DeviceInfo device(int index);

/// The device that worker `rank` takes where those of a host share its devices: in turn, by rank.
/// hosts[r] is the host of rank r. Pure.
int device_in_turn(int rank, const std::vector<int>& hosts, int device_count);

/// As 13000 for 13.0; the driver's is 0 where there is none. Of cuDNN as 91900 for 9.19.
struct Versions {
  int runtime = 0, driver = 0, cudnn = 0;
};
/// Throws Error(resource) when cuDNN is older than the one this library was built with.
Versions versions();

}  // namespace fast::cuda
