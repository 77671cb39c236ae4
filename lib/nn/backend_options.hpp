// What every backend that runs nn's models refuses.
#pragma once

#include <fast/nn/backend.hpp>

namespace fast::nn {

/// Throws Error(argument) on options out of range, but for the optimizer's own.
void require_valid(const BackendOptions& options);

}  // namespace fast::nn
