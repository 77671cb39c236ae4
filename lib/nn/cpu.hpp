// Checks that this processor can run the kernels.
#pragma once

namespace fast::nn {

bool processor_fits() noexcept;

/// Throws Error(resource) unless `fits`. To be called before the first kernel runs.
void require_processor(bool fits);

}  // namespace fast::nn
