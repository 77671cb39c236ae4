// Kernels with one thread per place, for the sources that nvcc compiles.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace fast::cuda {

// Starts one kernel, for the sources that nvcc compiles.

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

inline constexpr int place_threads = 256;

template <class Elements>
__global__ void __launch_bounds__(place_threads)
    run_places(const __grid_constant__ Elements elements, std::int64_t size) {
  const std::int64_t threads = std::int64_t{gridDim.x} * place_threads;
  for (std::int64_t e = std::int64_t{blockIdx.x} * place_threads + threadIdx.x; e < size;
       e += threads)
    elements.at(e);
}

/// Runs all elements.size() places on the current device.
template <class Elements>
cudaError_t launch_each(const Elements& elements, cudaStream_t stream) {
  const auto size = static_cast<std::int64_t>(elements.size());
  const std::int64_t blocks = (size + place_threads - 1) / place_threads;
  if (blocks == 0) return cudaSuccess;
  const auto grid = static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff));
  return start(run_places<Elements>, grid, place_threads, stream, elements, size);
}

}  // namespace fast::cuda
