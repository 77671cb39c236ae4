#include <fast/core/error.hpp>

#include "backends/registry.hpp"

namespace backends {

const BackendEntry entries::dlib{
    [](const fast::nn::ModelSpec&, std::uint64_t,
       const fast::nn::BackendOptions&) -> std::unique_ptr<fast::Backend> {
      fast::fail(
          fast::ErrorKind::argument,
          "--backend dlib: this program was built without it; install libdlib-dev, configure "
          "with -DFAST_DLIB=ON and build again");
    }};

}  // namespace backends
