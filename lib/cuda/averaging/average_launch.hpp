// Starts the kernels of averages: the border between C++ sources and those that nvcc compiles.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/averaging/average_elements.hpp"

namespace fast::cuda {

/// Runs on the current device.
template <class T, class Stored>
cudaError_t launch_average(const AverageLaunch<T, Stored>& work, cudaStream_t stream);

}  // namespace fast::cuda
