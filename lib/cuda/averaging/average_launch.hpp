// Starts the kernels of averages: the border between C++ sources and those that nvcc compiles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <fast/core/element.hpp>

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
/// Runs on the current device.
template <class T, class Stored>
cudaError_t launch_average(const AverageLaunch<T, Stored>& work, cudaStream_t stream);

}  // namespace fast::cuda
