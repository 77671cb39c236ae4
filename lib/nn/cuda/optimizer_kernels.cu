#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "cuda/device/launch_each.cuh"
#include "nn/cuda/optimizer_elements.hpp"
#include "nn/cuda/optimizer_launch.hpp"

namespace fast::cuda {
namespace {

constexpr int block_threads = 256;

bool all_aligned(std::initializer_list<const void*> pointers) {
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

template <int Width, class Elements, class Rule>
__global__ void __launch_bounds__(block_threads)
    run_ruled(const __grid_constant__ Elements elements, const Rule* rule, std::size_t count) {
  const std::size_t threads = std::size_t{gridDim.x} * block_threads;
  run_share<Width>(elements.with(*rule), std::size_t{blockIdx.x} * block_threads + threadIdx.x,
                   threads, count);
}

template <int Width, class Elements, class Rule>
cudaError_t launch_ruled(const Elements& elements, const Rule* rule, std::size_t count,
                         cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return start(run_ruled<Width, Elements, Rule>, blocks_for<Width>(count), block_threads, stream,
               elements, rule, count);
}

template <class T, class Update, class Rule>
cudaError_t update(T* weights, bool aligned, const Update& without_rule, const Rule* rule,
                   std::size_t count, cudaStream_t stream) {
  const UpdateElements<T, Update> elements{weights, without_rule};
  if (!aligned || !all_aligned({weights})) return launch_ruled<1>(elements, rule, count, stream);
  return launch_ruled<16 / sizeof(T)>(elements, rule, count, stream);
}

}  // namespace

template <class T>
cudaError_t launch_sgd(T* weights, const nn::SgdRule<T>* rule, const T* gradients, T* momentum,
                       std::size_t count, cudaStream_t stream) {
  return update(weights, all_aligned({gradients, momentum}), SgdUpdate<T>{{}, gradients, momentum},
                rule, count, stream);
}

template <class T>
cudaError_t launch_adam(T* weights, const nn::AdamRule<T>* rule, const T* gradients, T* first,
                        T* second, std::size_t count, cudaStream_t stream) {
  return update(weights, all_aligned({gradients, first, second}),
                AdamUpdate<T>{{}, gradients, first, second}, rule, count, stream);
}

#define FAST_INSTANTIATE(T)                                                                   \
  template cudaError_t launch_sgd(T*, const nn::SgdRule<T>*, const T*, T*, std::size_t,       \
                                  cudaStream_t);                                              \
  template cudaError_t launch_adam(T*, const nn::AdamRule<T>*, const T*, T*, T*, std::size_t, \
                                   cudaStream_t);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::cuda
