// Tensors in the memory of a GPU: builds with fast::cuda average them there.
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/worker/worker.hpp>

#include <memory>
#include <vector>

namespace fast::python {

/// Whether this is a build with fast::cuda.
extern const bool has_cuda;

/// Where the first of the tensors is; in host memory if there are none.
Device device_of(const std::vector<TensorView>& views);

/// That of the tensors' device; null for tensors in host memory. Throws Error(argument) in a build
/// without fast::cuda, and Error(resource) as cuda::accelerator() does.
std::shared_ptr<Accelerator> accelerator_of(const std::vector<TensorView>& views, Seconds deadline);

}  // namespace fast::python
