// Reads the bodies of prediction requests. Bodies of any content are read or refused, with memory
// in proportion to their size.
#pragma once

#include <string_view>

#include "serve/instances.hpp"

namespace fast::serve {

/// {"instances": [[...], ...]}, with the members "type" ("f32" or "u8") and "normalized" (true or
/// false) where they are wanted. An instance is a list of all values, or nested lists in the shape
/// of the model's samples. Throws Refusal(400), or (413) for too many instances, with the place of
/// the mistake.
Instances parse_json(std::string_view body, const InputForm& form);

/// Values as they are in memory: little-endian, row-major. `shape` is that of the whole tensor,
/// "64x1x28x28", or empty: as many samples as there are. Throws Refusal(400) or (413).
Instances parse_raw(std::string_view body, const InputForm& form, ElementType type,
                    std::string_view shape);

/// "f32" or "u8". Throws Refusal(400).
ElementType element_type(std::string_view name);

}  // namespace fast::serve
