// Starts the kernels of layers.
#pragma once

#include <cuda_runtime_api.h>

#include "nn/cuda/works.hpp"

namespace fast::cuda {

/// Starts the kernel of a work on the current device. The work must not be one of a library.
cudaError_t launch(const Work& work, cudaStream_t stream);

/// Runs all elements.size() places on the current device, one thread per place.
template <class Elements>
cudaError_t launch_each(const Elements& elements, cudaStream_t stream);

}  // namespace fast::cuda
