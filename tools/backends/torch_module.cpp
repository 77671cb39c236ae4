#include "backends/backends.hpp"

extern "C" fast::Backend* fast_train_make_torch(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                                const fast::nn::BackendOptions& options) {
  return backends::make_torch<float>(spec, seed, options).release();
}
