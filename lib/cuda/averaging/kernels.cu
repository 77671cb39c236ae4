#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "cuda/device/launch.hpp"
#include "cuda/device/launch_each.cuh"
#include "cuda/kernels/elements.hpp"

namespace fast::cuda {
namespace {

constexpr int block_threads = 256;
constexpr int any_degree_capacity = 128;  // max_neighbors; kernels' arguments hold 4 KiB

template <int Width, class Elements>
__global__ void __launch_bounds__(block_threads)
    run_elements(const __grid_constant__ Elements elements, std::size_t count) {
  const std::size_t threads = std::size_t{gridDim.x} * block_threads;
  run_share<Width>(elements, std::size_t{blockIdx.x} * block_threads + threadIdx.x, threads, count);
}

template <int Width, class Elements, class Rule>
__global__ void __launch_bounds__(block_threads)
    run_ruled(const __grid_constant__ Elements elements, const Rule* rule, std::size_t count) {
  const std::size_t threads = std::size_t{gridDim.x} * block_threads;
  run_share<Width>(elements.with(*rule), std::size_t{blockIdx.x} * block_threads + threadIdx.x,
                   threads, count);
}

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

template <int Width, class Elements>
cudaError_t run(const Elements& elements, std::size_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return start(run_elements<Width, Elements>, blocks_for<Width>(count), block_threads, stream,
               elements, count);
}

template <int Width, class Elements, class Rule>
cudaError_t run(const Elements& elements, const Rule* rule, std::size_t count,
                cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return start(run_ruled<Width, Elements, Rule>, blocks_for<Width>(count), block_threads, stream,
               elements, rule, count);
}

template <int Degree, int Capacity, class T, class Stored, class Update>
AverageElements<T, Stored, Degree, Capacity, Update> elements_of(
    const AverageLaunch<T, Stored>& work, const Update& update) {
  AverageElements<T, Stored, Degree, Capacity, Update> elements{
      work.current, work.next, work.own, {}, {}, work.degree, update};
  std::copy_n(work.values, work.degree, elements.values);
  std::copy_n(work.factors, work.degree, elements.factors);
  return elements;
}

template <int Width, class T, class Stored, class Update>
cudaError_t average_packs(const AverageLaunch<T, Stored>& work, const Update& update,
                          cudaStream_t stream) {
  switch (work.degree) {
    case 1:
      return run<Width>(elements_of<1, 1>(work, update), work.count, stream);
    case 2:
      return run<Width>(elements_of<2, 2>(work, update), work.count, stream);
    case 4:
      return run<Width>(elements_of<4, 4>(work, update), work.count, stream);
    default:
      return run<Width>(elements_of<0, any_degree_capacity>(work, update), work.count, stream);
  }
}

template <class T, class Stored, class Update>
cudaError_t average(const AverageLaunch<T, Stored>& work, bool aligned, const Update& update,
                    cudaStream_t stream) {
  if (work.degree > any_degree_capacity) return cudaErrorInvalidValue;
  aligned = aligned && all_aligned({work.current, work.next, work.own});
  for (int j = 0; j < work.degree; ++j) aligned = aligned && all_aligned({work.values[j]});
  if (!aligned)
    return run<1>(elements_of<0, any_degree_capacity>(work, update), work.count, stream);
  // Accesses of 16 bytes: to the weights if they are read and stored, else to the slots. A thread
  // that stored 32 bytes of weights by two accesses would leave sectors of 32 bytes half full.
  if (work.current != nullptr) return average_packs<16 / sizeof(T)>(work, update, stream);
  return average_packs<16 / sizeof(Stored)>(work, update, stream);
}

template <class T, class Update, class Rule>
cudaError_t update(T* weights, bool aligned, const Update& without_rule, const Rule* rule,
                   std::size_t count, cudaStream_t stream) {
  const UpdateElements<T, Update> elements{weights, without_rule};
  if (!aligned || !all_aligned({weights})) return run<1>(elements, rule, count, stream);
  return run<16 / sizeof(T)>(elements, rule, count, stream);
}

}  // namespace

template <class T, class Stored>
cudaError_t launch_average(const AverageLaunch<T, Stored>& work, const SgdLaunch<T>* step,
                           cudaStream_t stream) {
  if (step == nullptr) return average(work, true, NoUpdate<T>{}, stream);
  return average(work, all_aligned({step->gradients, step->momentum}),
                 SgdUpdate<T>{step->rule, step->gradients, step->momentum}, stream);
}

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

template cudaError_t launch_average(const AverageLaunch<float, float>&, const SgdLaunch<float>*,
                                    cudaStream_t);
template cudaError_t launch_average(const AverageLaunch<double, double>&, const SgdLaunch<double>*,
                                    cudaStream_t);
template cudaError_t launch_average(const AverageLaunch<float, BFloat16>&, const SgdLaunch<float>*,
                                    cudaStream_t);

}  // namespace fast::cuda
