// Kernels in which the threads of a block work together, for the sources that nvcc compiles.
#pragma once

#include "cuda/device/start.cuh"
#include "cuda/kernels/sum_elements.hpp"

namespace fast::cuda {

template <class Work>
__global__ void __launch_bounds__(block_size) run_blocks(const __grid_constant__ Work work) {
  __shared__ typename Work::Scratch scratch;
  run_block(work, blockIdx.x, scratch, [](const auto& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  });
}

/// Runs all blocks of a work on the current device.
template <class Work>
cudaError_t launch_blocks(const Work& work, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(work.shares.blocks());
  return start(run_blocks<Work>, blocks, block_size, stream, work);
}

}  // namespace fast::cuda
