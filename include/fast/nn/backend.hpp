// The library's own networks behind the adapter that the Trainer drives.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/sgd.hpp>

#include <cstdint>
#include <memory>

namespace fast::nn {

/// A Network<T> with SGD; T is float or double. name() is "nn". Parameters are views of one flat
/// vector in their order, the optimizer's state is "momentum" (empty without momentum). Throws as
/// Network and Sgd do.
template <class T>
std::unique_ptr<Backend> make_backend(ModelSpec spec, std::uint64_t seed, SgdOptions options = {});

}  // namespace fast::nn
