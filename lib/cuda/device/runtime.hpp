// CUDA's runtime for the sources of this room: errors, and the current device. Of the driver's
// interface nothing is used, so that programs start where there is no driver.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace fast::cuda {

/// 34: a stub instead of the driver; 35: no driver, or too old; 100: no device.
bool means_no_gpu(int code) noexcept;
/// One line for each of these.
std::string why_no_gpu(int code);
/// Throws Error(resource): what failed and what to do.
[[noreturn]] void raise(int code, std::string_view operation);

inline void check(cudaError_t code, std::string_view operation) {
  if (code != cudaSuccess) raise(code, operation);
}

/// True when this process has a context on the device, which takes memory there.
bool has_context(int device);
/// The current device or, where that has no context, one that has: for host memory, which needs
/// none in particular.
int device_in_use();

/// Makes a device the current one of this thread for as long as it lives; and longer, where going
/// back would make a context on a device that nobody uses (since CUDA 12 cudaSetDevice makes one).
class UseDevice {
 public:
  explicit UseDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (device != before_) check(cudaSetDevice(device), "cudaSetDevice");
    changed_ = device != before_;
  }
  ~UseDevice() {
    if (changed_ && has_context(before_)) cudaSetDevice(before_);
  }
  UseDevice(const UseDevice&) = delete;
  UseDevice& operator=(const UseDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace fast::cuda
