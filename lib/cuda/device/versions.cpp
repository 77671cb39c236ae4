// Apart from device.cpp: programs that only average load no cuDNN.
#include <cudnn_graph.h>
#include <cudnn_version.h>

#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>

#include "cuda/device/runtime.hpp"

namespace fast::cuda {

Versions versions() {
  Versions found;
  found.cudnn = static_cast<int>(cudnnGetVersion());
  require(found.cudnn >= CUDNN_VERSION, ErrorKind::resource,
          "cuda: cuDNN {} was loaded, {} or later is required; install it, or take older ones out "
          "of LD_LIBRARY_PATH",
          found.cudnn, CUDNN_VERSION);
  check(cudaRuntimeGetVersion(&found.runtime), "cudaRuntimeGetVersion");
  if (cudaDriverGetVersion(&found.driver) != cudaSuccess) found.driver = 0;
  return found;
}

}  // namespace fast::cuda
