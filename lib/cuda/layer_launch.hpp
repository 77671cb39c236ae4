// Starts the kernels of layers, one thread a place.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/lstm_elements.hpp"
#include "cuda/norm_elements.hpp"

namespace fast::cuda {

/// All of elements.size() places, on the current device.
template <class Elements>
cudaError_t launch_each(const Elements& elements, cudaStream_t stream);

}  // namespace fast::cuda
