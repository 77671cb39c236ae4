#include "cuda/device/runtime.hpp"

#include <cstdlib>
#include <fast/core/error.hpp>

namespace fast::cuda {

bool means_no_gpu(int code) noexcept {
  return code == cudaErrorStubLibrary || code == cudaErrorInsufficientDriver ||
         code == cudaErrorNoDevice;
}

std::string why_no_gpu(int code) {
  if (code == cudaErrorStubLibrary) {
    return "cuda: no GPU here: the toolkit's stub of libcuda.so was loaded in the driver's place; "
           "take the toolkit's stubs folder out of LD_LIBRARY_PATH, or run on the CPU";
  }
  if (code == cudaErrorInsufficientDriver) {
    return fmt::format(
        "cuda: no GPU here: the NVIDIA driver is missing or older than {}, which CUDA {}.{} needs; "
        "install or update it (nvidia-smi shows it), or run on the CPU",
        FAST_LEAST_DRIVER, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return fmt::format(
      "cuda: no GPU here: the driver shows no device (CUDA_VISIBLE_DEVICES is {}); see what "
      "nvidia-smi lists and which devices may be seen, or run on the CPU",
      visible == nullptr ? "not set" : fmt::format("\"{}\"", visible));
}

namespace {

/// The runtime has no such function.
using ContextState = int (*)(int device, unsigned* flags, int* active);

}  // namespace

void* driver_function(const char* name, unsigned since) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &result);
#else
  static_cast<void>(since);
  const cudaError_t code = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (code == cudaSuccess && result == cudaDriverEntryPointSuccess) return found;
  cudaGetLastError();  // clear it: this code is an answer
  return nullptr;
}

bool has_context(int device) {
  static const auto state =
      reinterpret_cast<ContextState>(driver_function("cuDevicePrimaryCtxGetState", 7000));
  unsigned flags = 0;
  int active = 1;
  return state == nullptr || state(device, &flags, &active) != 0 || active != 0;
}

int device_in_use() {
  int current = 0, count = 0;
  check(cudaGetDevice(&current), "cudaGetDevice");
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (has_context(current)) return current;
  for (int device = 0; device < count; ++device) {
    if (has_context(device)) return device;
  }
  return current;
}

void raise(int code, std::string_view operation) {
  cudaGetLastError();  // clear it: a later call must not report it
  if (means_no_gpu(code)) throw Error(ErrorKind::resource, why_no_gpu(code));
  const auto error = static_cast<cudaError_t>(code);
  const char* what_to_do = "see whether compute-sanitizer names the kernel";
  if (error == cudaErrorMemoryAllocation)
    what_to_do =
        "take smaller batches or models, or fewer workers a device; PyTorch keeps freed memory "
        "until torch.cuda.empty_cache()";
  if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread)
    what_to_do =
        "a CUDA graph is being captured, of which no call of this library can be a part; end the "
        "capture before the call";
  if (error == cudaErrorNoKernelImageForDevice)
    what_to_do =
        "build for that device by -DCMAKE_CUDA_ARCHITECTURES=, or take one of compute capability "
        "8.0 or later";
  fail(ErrorKind::resource, "cuda: {} failed with {} ({}): {}; {}", operation,
       cudaGetErrorName(error), code, cudaGetErrorString(error), what_to_do);
}

}  // namespace fast::cuda
