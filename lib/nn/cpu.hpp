// Is this processor the one the kernels were compiled for?
#pragma once

namespace fast::nn {

bool processor_fits() noexcept;

/// Throws Error(resource) unless `fits`. Called before the first kernel runs.
void require_processor(bool fits);

}  // namespace fast::nn
