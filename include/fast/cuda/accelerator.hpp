// Workers whose tensors are in the memory of a GPU:
//
//   WorkerOptions options;
//   options.accelerator = cuda::accelerator();
//   Worker worker(group, stencil::ring(), tensors_on_the_gpu, options);
#pragma once

#include <fast/combine/accelerator.hpp>
#include <fast/cuda/stream.hpp>

#include <memory>

namespace fast::cuda {

/// Of one worker with tensors on that device. Its work goes to a stream of its own: let a step
/// return when its kernels are done (as cudaStreamSynchronize says). Waits for the device end with
/// Error(deadline). Throws Error(resource) as cuda::device() does.
std::shared_ptr<Accelerator> accelerator(int device = 0, Seconds deadline = Seconds(300));

/// Its work goes to `stream`, which must outlive it: steps may leave theirs enqueued there.
std::shared_ptr<Accelerator> accelerator(const Stream& stream, Seconds deadline = Seconds(300));

}  // namespace fast::cuda
