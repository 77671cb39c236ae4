#include "backends/registry.hpp"

namespace backends {

const BackendEntry entries::nn{[](const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                  const fast::nn::BackendOptions& options) {
  return fast::nn::make_backend<float>(spec, seed, options);
}};

}  // namespace backends
