// Whether a model's values are finite.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <string>

namespace fast::combine {

/// Returns whether a packed vector of that layout is finite.
bool is_finite(const ParameterLayout& layout, const std::byte* packed);
/// Returns whether the model's memory, which is the host's, is finite.
bool is_finite(const ParameterLayout& layout);
/// The first tensor in that memory with a value that is not finite, as describe(TensorView); empty:
/// there is none.
std::string first_not_finite(const ParameterLayout& layout);

}  // namespace fast::combine
