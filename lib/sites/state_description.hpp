// What a state's bytes are: its last part names the tensors of its weights. Who does not train the
// model can read them, too.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fast::sites {

/// The last part of a state: JSON that has the name, shape, type, role and place of each tensor of
/// the weights, which begin the state, and the length of this JSON in eight bytes, little-endian.
/// Equal layouts have equal descriptions.
std::string describe_weights(const ParameterLayout& weights);

/// The tensors of a state's weights, which lie in its memory, and are not to be changed. Throws
/// Error(data) when the last part is no such description, or does not fit the bytes before it.
std::vector<TensorView> weights_in(std::span<std::byte> state);

}  // namespace fast::sites
