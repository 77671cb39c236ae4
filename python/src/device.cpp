#include "device.hpp"

#include <fast/core/error.hpp>
#ifdef FAST_PYTHON_CUDA
#include <fast/cuda/accelerator.hpp>
#endif

namespace fast::python {
Device device_of(const std::vector<TensorView>& views) {
  return views.empty() ? Device{} : views.front().device;
}

#ifdef FAST_PYTHON_CUDA

namespace {

void require_one_device(const std::vector<TensorView>& views) {
  for (const TensorView& view : views) {
    require(view.device == device_of(views), ErrorKind::argument,
            "Worker: {} is in {}, {} in {}; move the model to one device", describe(view),
            describe(view.device), describe(views.front()), describe(device_of(views)));
  }
}

}  // namespace

const bool has_cuda = true;

/// Its stream is its own. The end of a round gets PyTorch's stream. Before other calls, models.py
/// waits for what a step has begun.
std::shared_ptr<Accelerator> accelerator_of(const std::vector<TensorView>& views,
                                            Seconds deadline) {
  require_one_device(views);
  const Device device = device_of(views);
  if (device == Device{}) return nullptr;
  return cuda::accelerator(device.index, deadline);
}

#else

const bool has_cuda = false;

std::shared_ptr<Accelerator> accelerator_of(const std::vector<TensorView>& views, Seconds) {
  for (const TensorView& view : views) {
    require(view.device == Device{}, ErrorKind::argument,
            "Worker: tensor \"{}\" is in the memory of cuda:{}, and this package was built without "
            "fast::cuda; install it with that, by pip install . "
            "--config-settings=cmake.define.FAST_CUDA=ON, or move the model to host memory, as by "
            "module.cpu()",
            view.name, view.device.index);
  }
  return nullptr;
}

#endif

}  // namespace fast::python
