// Starts one kernel, for the sources that nvcc compiles.
#pragma once

#include <cuda_runtime.h>

namespace fast::cuda {

/// How this start went, whatever error an earlier call has left in its thread: cudaGetLastError()
/// would give that one.
template <class... Parameters, class... Arguments>
cudaError_t start(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                  cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(blocks);
  launch.blockDim = dim3(threads);
  launch.stream = stream;
  return cudaLaunchKernelEx(&launch, kernel, arguments...);
}

}  // namespace fast::cuda
