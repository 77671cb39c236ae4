// One kernel for all runs of a table, for the sources that nvcc compiles.
#pragma once

#include "cuda/device/chunks.hpp"
#include "cuda/device/launch_each.cuh"

namespace fast::cuda {

template <int Width, class Elements>
__global__ void __launch_bounds__(place_threads)
    run_chunks(const __grid_constant__ Elements elements,
               const __grid_constant__ combine::RunTable table) {
  for (std::uint32_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x)
    run_chunk<Width>(elements, table, chunk, threadIdx.x, place_threads);
}

template <int Width, class Elements>
cudaError_t launch_chunks(const Elements& elements, const combine::RunTable& table,
                          cudaStream_t stream) {
  if (table.chunks == 0) return cudaSuccess;
  return start(run_chunks<Width, Elements>, std::min(table.chunks, 0x7fffffffU), place_threads,
               stream, elements, table);
}

}  // namespace fast::cuda
