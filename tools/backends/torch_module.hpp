// What fast-train finds in its module of LibTorch.
#pragma once

#include <fast/nn/backend.hpp>

namespace backends {

/// make_torch<float>() with default replica options; the caller owns the result.
using MakeTorch = fast::Backend*(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                 const fast::nn::BackendOptions& options);
inline constexpr const char* make_torch_symbol = "fast_train_make_torch";

}  // namespace backends
