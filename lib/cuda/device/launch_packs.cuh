// Kernels whose threads load and store packs of elements, for the sources that nvcc compiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "cuda/device/elements.hpp"
#include "cuda/device/launch_each.cuh"

namespace fast::cuda {

inline constexpr int block_threads = 256;

inline bool all_aligned(std::initializer_list<const void*> pointers) {
  return std::all_of(pointers.begin(), pointers.end(), [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  });
}

template <int Width>
unsigned blocks_for(std::size_t count) {
  const std::size_t shares = (count + Width - 1) / Width;
  const std::size_t blocks = (shares + block_threads - 1) / block_threads;
  return static_cast<unsigned>(std::min<std::size_t>(blocks, 0x7fffffff));
}

template <int Width, class Elements>
__global__ void __launch_bounds__(block_threads)
    run_elements(const __grid_constant__ Elements elements, std::size_t count) {
  const std::size_t threads = std::size_t{gridDim.x} * block_threads;
  run_share<Width>(elements, std::size_t{blockIdx.x} * block_threads + threadIdx.x, threads, count);
}

template <int Width, class Elements>
cudaError_t launch_packs(const Elements& elements, std::size_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return start(run_elements<Width, Elements>, blocks_for<Width>(count), block_threads, stream,
               elements, count);
}

}  // namespace fast::cuda
