// Starts the kernels of layers.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/kernels/batch_norm_elements.hpp"
#include "cuda/kernels/group_norm_elements.hpp"
#include "cuda/kernels/loss_elements.hpp"
#include "cuda/kernels/lstm_elements.hpp"

namespace fast::cuda {

/// All of elements.size() places, one thread each, on the current device.
template <class Elements>
cudaError_t launch_each(const Elements& elements, cudaStream_t stream);
/// All blocks of a work that is done by whole blocks, on the current device.
template <class Work>
cudaError_t launch_blocks(const Work& work, cudaStream_t stream);

}  // namespace fast::cuda
