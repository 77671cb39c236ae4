// The samples of a request.
#pragma once

#include <fast/nn/model_spec.hpp>

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace fast::serve {

/// f32: numbers; u8: bytes, as image files have them. Bytes are divided by 255.
enum class ElementType { f32, u8 };

/// Row-major, `count` samples one after the other. Floats are finite.
struct Instances {
  std::variant<std::vector<float>, std::vector<std::uint8_t>> values;
  std::size_t count = 0;
  bool normalized = false;  ///< the client has normalized the values as training did
};

/// What a model takes.
struct InputForm {
  nn::Shape sample;
  std::size_t most_instances = 0;
};

}  // namespace fast::serve
