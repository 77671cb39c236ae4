// The memory of a model that nobody trains yet.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <vector>

namespace fast::train {

/// Gives the whole pages of these tensors, in private host memory, back to the system. Afterwards
/// their elements are undefined; writing to them takes pages again.
void release_pages(const std::vector<TensorView>& tensors);

}  // namespace fast::train
