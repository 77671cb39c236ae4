#include <fast/core/error.hpp>

#include "backends/registry.hpp"

namespace backends {

const BackendEntry entries::torch{
    [](const fast::nn::ModelSpec&, std::uint64_t,
       const fast::nn::BackendOptions&) -> std::unique_ptr<fast::Backend> {
      fast::fail(
          fast::ErrorKind::argument,
          "--backend torch: this program was built without it; install libtorch-dev, configure "
          "with -DFAST_TORCH=ON and build again");
    }};

}  // namespace backends
