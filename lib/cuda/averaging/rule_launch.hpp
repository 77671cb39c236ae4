// Starts the kernels of rules.
#pragma once

#include <cuda_runtime_api.h>

namespace fast::combine {
struct ElementWork;
}

namespace fast::cuda {

/// Runs all kinds of work except ElementWork::average, on the current device.
cudaError_t launch_rule(const combine::ElementWork& work, cudaStream_t stream);

}  // namespace fast::cuda
