#include <fast/core/error.hpp>

#include "backends/backends.hpp"

namespace backends {

OnDevice make_cuda(const fast::nn::ModelSpec&, std::uint64_t, const fast::nn::BackendOptions&,
                   const CudaPlace&) {
  fast::fail(
      fast::ErrorKind::argument,
      "--device cuda: this program was built without it; install the CUDA toolkit and cuDNN, "
      "configure with -DFAST_CUDA=ON and build again, or take --device cpu");
}

}  // namespace backends
