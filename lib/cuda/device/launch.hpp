// Starts kernels: the border between C++ sources and those that nvcc compiles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <fast/core/element.hpp>

#include "nn/kernels/rule_values.hpp"

namespace fast::cuda {

/// Arguments of the end of a round. The arrays are in host memory.
template <class T, class Stored>
struct AverageLaunch {
  T* current;
  Stored* next;
  const Stored* own;
  const Stored* const* values;
  const T* factors;
  int degree;
  std::size_t count;
};
template <class T>
struct SgdLaunch {
  nn::SgdRule<T> rule;
  const T* gradients;
  T* momentum;
};

/// Runs on the current device. If `step` is null, only averages.
template <class T, class Stored>
cudaError_t launch_average(const AverageLaunch<T, Stored>& work, const SgdLaunch<T>* step,
                           cudaStream_t stream);
/// `rule` is in the memory of the device, written by StoreRule.
template <class T>
cudaError_t launch_sgd(T* weights, const nn::SgdRule<T>* rule, const T* gradients, T* momentum,
                       std::size_t count, cudaStream_t stream);
template <class T>
cudaError_t launch_adam(T* weights, const nn::AdamRule<T>* rule, const T* gradients, T* first,
                        T* second, std::size_t count, cudaStream_t stream);

}  // namespace fast::cuda
