// Starts the kernels of layers.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/network/works.hpp"

namespace fast::cuda {

/// Starts a work's kernel on the current device. Not for works of libraries.
cudaError_t launch(const Work& work, cudaStream_t stream);

/// All of elements.size() places, one thread each, on the current device.
template <class Elements>
cudaError_t launch_each(const Elements& elements, cudaStream_t stream);

}  // namespace fast::cuda
