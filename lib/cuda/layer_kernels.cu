#include <algorithm>

#include "cuda/layer_launch.hpp"

namespace fast::cuda {
namespace {

constexpr int block_threads = 256;

template <class Elements>
__global__ void __launch_bounds__(block_threads)
    run_places(const __grid_constant__ Elements elements, Index size) {
  const Index threads = Index{gridDim.x} * block_threads;
  for (Index e = Index{blockIdx.x} * block_threads + threadIdx.x; e < size; e += threads)
    elements.at(e);
}

}  // namespace

template <class Elements>
cudaError_t launch_each(const Elements& elements, cudaStream_t stream) {
  const Index size = elements.size(), blocks = (size + block_threads - 1) / block_threads;
  if (blocks == 0) return cudaSuccess;
  const auto grid = static_cast<unsigned>(std::min<Index>(blocks, 0x7fffffff));
  run_places<<<grid, block_threads, 0, stream>>>(elements, size);
  return cudaGetLastError();
}

template cudaError_t launch_each(const SwapLast&, cudaStream_t);
template cudaError_t launch_each(const AddBias&, cudaStream_t);
template cudaError_t launch_each(const Rectify&, cudaStream_t);
template cudaError_t launch_each(const RectifySlopes&, cudaStream_t);
template cudaError_t launch_each(const Add&, cudaStream_t);
template cudaError_t launch_each(const AddScaled&, cudaStream_t);
template cudaError_t launch_each(const ColumnShares&, cudaStream_t);
template cudaError_t launch_each(const ColumnTotals&, cudaStream_t);
template cudaError_t launch_each(const MomentShares&, cudaStream_t);
template cudaError_t launch_each(const MomentTotals&, cudaStream_t);
template cudaError_t launch_each(const Reciprocals&, cudaStream_t);
template cudaError_t launch_each(const Normalize&, cudaStream_t);
template cudaError_t launch_each(const NormalizeShares&, cudaStream_t);
template cudaError_t launch_each(const NormalizeSlopes&, cudaStream_t);
template cudaError_t launch_each(const PoolMax&, cudaStream_t);
template cudaError_t launch_each(const PoolMaxSlopes&, cudaStream_t);
template cudaError_t launch_each(const PoolMean&, cudaStream_t);
template cudaError_t launch_each(const PoolMeanSlopes&, cudaStream_t);
template cudaError_t launch_each(const SoftmaxLoss&, cudaStream_t);

}  // namespace fast::cuda
