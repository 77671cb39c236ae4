// Workers whose tensors are in the memory of a GPU:
//
//   WorkerOptions options;
//   options.accelerator = cuda::accelerator();
//   Worker worker(group, stencil::ring(), tensors_on_the_gpu, options);
#pragma once

#include <fast/cuda/stream.hpp>

#include <memory>

namespace fast {
class Accelerator;
}

namespace fast::cuda {

/// The accelerator of one worker with tensors on that device. The work runs on a new stream. A step
/// must return after its kernels have finished (as after cudaStreamSynchronize), or the round gets
/// the step's stream as StepOptions::queue. Waits for the device end with Error(deadline). Throws
/// Error(resource) as cuda::device() does.
std::shared_ptr<Accelerator> accelerator(int device = 0, Seconds deadline = Seconds(300));

/// The work runs on `stream`, which must outlive the accelerator. Steps may enqueue their work
/// there and return.
std::shared_ptr<Accelerator> accelerator(const Stream& stream, Seconds deadline = Seconds(300));

}  // namespace fast::cuda
