// Starts one kernel, for the sources that nvcc compiles.
#pragma once

#include <cuda_runtime.h>

namespace fast::cuda {

/// The result of this launch only. cudaGetLastError() could give the error of an earlier call.
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
