#include "cuda/device/launch_each.cuh"

#include "nn/cuda/layer_launch.hpp"
#include "nn/cuda/optimizer_elements.hpp"
#include "nn/cuda/sum_elements.hpp"

namespace fast::cuda {

// Kernels in which the threads of a block work together, for the sources that nvcc compiles.

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

/// Compiles a kernel for each type of work that has one.
cudaError_t launch(const Work& work, cudaStream_t stream) {
  return std::visit(
      [&](const auto& w) {
        using W = std::decay_t<decltype(w)>;
        if constexpr (is_block_work<W>)
          return launch_blocks(w, stream);
        else if constexpr (is_library_work<W>)
          return cudaErrorInvalidValue;
        else
          return launch_each(w, stream);
      },
      work);
}

// Kernels that are not works of a program.
#define FAST_INSTANTIATE(...) template cudaError_t launch_each(const __VA_ARGS__&, cudaStream_t);
FAST_INSTANTIATE(AddScaled)
FAST_INSTANTIATE(StoreRule<nn::SgdRule<float>>)
FAST_INSTANTIATE(StoreRule<nn::SgdRule<double>>)
FAST_INSTANTIATE(StoreRule<nn::AdamRule<float>>)
FAST_INSTANTIATE(StoreRule<nn::AdamRule<double>>)
#define FAST_INSTANTIATE_FOR(V)      \
  FAST_INSTANTIATE(Rectify<V>)       \
  FAST_INSTANTIATE(PackRecurrent<V>) \
  FAST_INSTANTIATE(UnpackRecurrent<V>)
FAST_INSTANTIATE_FOR(float)
FAST_INSTANTIATE_FOR(BFloat16)

}  // namespace fast::cuda
