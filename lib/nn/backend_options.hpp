// Checks that all backends for models of nn have in common.
#pragma once

#include <fast/nn/backend.hpp>

namespace fast::nn {

/// Throws Error(argument) on options out of range. Does not check the options of the optimizer.
void require_valid(const BackendOptions& options);

}  // namespace fast::nn
