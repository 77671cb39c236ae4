// A packed vector that follows a model's weights.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <cstddef>

#include "combine/accelerator.hpp"

namespace fast::combine {

/// average ← average + part (weights - average), of f32 and f64 tensors; others are copied.
/// `average` is packed as the layout says. With an accelerator both are in its memory, otherwise in
/// the host's. Blocks.
void move_average(std::byte* average, const ParameterLayout& weights, double part,
                  Accelerator* accelerator);

}  // namespace fast::combine
