#include <fast/core/error.hpp>

#include "backends/backends.hpp"

namespace backends {

template <class T>
std::unique_ptr<fast::Backend> make_torch(const fast::nn::ModelSpec&, std::uint64_t,
                                          const fast::nn::BackendOptions&,
                                          const fast::torch::ReplicaOptions&) {
  fast::fail(fast::ErrorKind::argument,
             "--backend torch: this program was built without it; install libtorch-dev, configure "
             "with -DFAST_TORCH=ON and build again");
}

template std::unique_ptr<fast::Backend> make_torch<float>(const fast::nn::ModelSpec&, std::uint64_t,
                                                          const fast::nn::BackendOptions&,
                                                          const fast::torch::ReplicaOptions&);

}  // namespace backends
