// Starts the kernels of optimizers: the border between C++ sources and those that nvcc compiles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "nn/kernels/rule_values.hpp"

namespace fast::cuda {

/// `rule` is in the memory of the device, written by StoreRule.
template <class T>
cudaError_t launch_sgd(T* weights, const nn::SgdRule<T>* rule, const T* gradients, T* momentum,
                       std::size_t count, cudaStream_t stream);
template <class T>
cudaError_t launch_adam(T* weights, const nn::AdamRule<T>* rule, const T* gradients, T* first,
                        T* second, std::size_t count, cudaStream_t stream);

}  // namespace fast::cuda
