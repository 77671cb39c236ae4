#include "cuda/device/launch_each.cuh"
#include "cuda/kernels/layer_launch.hpp"

namespace fast::cuda {

#define FAST_INSTANTIATE(...) template cudaError_t launch_each(const __VA_ARGS__&, cudaStream_t);
FAST_INSTANTIATE(AddScaled)
FAST_INSTANTIATE(FixedMoments)
FAST_INSTANTIATE(GroupMoments)
FAST_INSTANTIATE(GroupGradients)
FAST_INSTANTIATE(SwapLast<float, BFloat16>)
FAST_INSTANTIATE(SwapLast<BFloat16, float>)
FAST_INSTANTIATE(StoreRule<nn::SgdRule<float>>)
FAST_INSTANTIATE(StoreRule<nn::SgdRule<double>>)
FAST_INSTANTIATE(StoreRule<nn::AdamRule<float>>)
FAST_INSTANTIATE(StoreRule<nn::AdamRule<double>>)
#define FAST_INSTANTIATE_FOR(V)                \
  FAST_INSTANTIATE(SwapLast<V, V>)             \
  FAST_INSTANTIATE(AddBias<V>)                 \
  FAST_INSTANTIATE(Rectify<V>)                 \
  FAST_INSTANTIATE(RectifyGradients<V>)        \
  FAST_INSTANTIATE(Add<V>)                     \
  FAST_INSTANTIATE(Normalize<V>)               \
  FAST_INSTANTIATE(NormalizeGradients<V>)      \
  FAST_INSTANTIATE(PlaneMoments<V>)            \
  FAST_INSTANTIATE(GroupNormalize<V>)          \
  FAST_INSTANTIATE(GroupNormalizeShares<V>)    \
  FAST_INSTANTIATE(GroupNormalizeGradients<V>) \
  FAST_INSTANTIATE(PoolMax<V>)                 \
  FAST_INSTANTIATE(PoolMaxGradients<V>)        \
  FAST_INSTANTIATE(PoolMean<V>)                \
  FAST_INSTANTIATE(PoolMeanGradients<V>)       \
  FAST_INSTANTIATE(PackLstm<V>)                \
  FAST_INSTANTIATE(UnpackLstm<V>)              \
  FAST_INSTANTIATE(TakeLast<V>)                \
  FAST_INSTANTIATE(SpreadLast<V>)
FAST_INSTANTIATE_FOR(float)
FAST_INSTANTIATE_FOR(BFloat16)

}  // namespace fast::cuda
