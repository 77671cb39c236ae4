// CUDA's runtime for the sources of this module: errors, and the current device. The sources use no
// function of the driver directly, so that programs start on machines without a driver.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace fast::cuda {

/// 34: a stub of the driver. 35: no driver, or an old one. 100: no device.
bool means_no_gpu(int code) noexcept;
/// A line of text for each of these codes.
std::string why_no_gpu(int code);
/// Throws Error(resource) that says what failed and what to do.
[[noreturn]] void raise(int code, std::string_view operation);

inline void check(cudaError_t code, std::string_view operation) {
  if (code != cudaSuccess) raise(code, operation);
}

/// A function of the driver as it was in that version of CUDA, 11070 for 11.7. Null if there is
/// none.
void* driver_function(const char* name, unsigned since);
/// True if this process has a context on the device. A context uses memory of the device.
bool has_context(int device);
/// A device with a context, preferably the current device. Host memory can be allocated from any.
int device_in_use();

/// Makes a device the current one of this thread until the destructor. The destructor does not
/// restore an earlier device without a context: since CUDA 12, cudaSetDevice would create one
/// there.
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
