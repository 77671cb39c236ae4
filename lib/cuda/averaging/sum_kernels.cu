#include "cuda/device/start.cuh"
#include "cuda/kernels/layer_launch.hpp"

namespace fast::cuda {
namespace {

template <class Work>
__global__ void __launch_bounds__(block_size) run_blocks(const __grid_constant__ Work work) {
  __shared__ typename Work::Scratch scratch;
  run_block(work, blockIdx.x, scratch, [](const auto& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  });
}

}  // namespace

template <class Work>
cudaError_t launch_blocks(const Work& work, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(work.shares.blocks());
  return start(run_blocks<Work>, blocks, block_size, stream, work);
}

#define FAST_INSTANTIATE(...) template cudaError_t launch_blocks(const __VA_ARGS__&, cudaStream_t);
FAST_INSTANTIATE(ColumnTotals)
FAST_INSTANTIATE(MomentTotals)
FAST_INSTANTIATE(NormalizeTotals)
#define FAST_INSTANTIATE_FOR(V)        \
  FAST_INSTANTIATE(ColumnShares<V>)    \
  FAST_INSTANTIATE(MomentShares<V>)    \
  FAST_INSTANTIATE(NormalizeShares<V>) \
  FAST_INSTANTIATE(SoftmaxLoss<V>)
FAST_INSTANTIATE_FOR(float)
FAST_INSTANTIATE_FOR(BFloat16)

}  // namespace fast::cuda
