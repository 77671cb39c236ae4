// Reads the bodies of prediction requests. Bodies of any content are read or refused, with memory
// in proportion to their size.
#pragma once

#include <fast/nn/model_spec.hpp>

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fast::serve {

/// Why a request gets no prediction: a status of HTTP and a sentence for the client.
class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const noexcept { return status_; }  ///< 400 to 599

 private:
  int status_;
};

template <class... Args>
[[noreturn]] void refuse(int status, fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal(status, fmt::format(format, std::forward<Args>(args)...));
}

// The samples of a request.

/// f32: numbers; u8: bytes, as image files have them. Bytes are divided by 255.
enum class ElementType { f32, u8 };

/// Row-major, `count` samples one after the other. Floats are finite.
struct Instances {
  std::variant<std::vector<float>, std::vector<std::uint8_t>> values;
  std::size_t count = 0;
  bool normalized = false;  ///< the client has normalized the values as training did
  bool are_objects = false;
};

/// What a model takes. Of a table's rows also the names of its features, and the number that stands
/// for each if it is missing (or one for all). The owner keeps both.
struct InputForm {
  nn::Shape sample;
  std::size_t most_instances = 0;
  std::span<const std::string> features = {};
  std::span<const float> means = {};
};

/// {"instances": [[...], ...]}, with the members "type" ("f32" or "u8") and "normalized" (true or
/// false) where they are wanted. An instance is a list of all values, or nested lists in the shape
/// of the model's samples. If these are rows of a table, an instance may also be an object: texts,
/// numbers, true, false and null (missing) by the columns' names, encoded as in training. Members
/// of other names are left out. Throws Refusal(400), or (413) for too many instances, with the
/// place of the mistake.
Instances parse_json(std::string_view body, const InputForm& form);

/// Values as they are in memory: little-endian, row-major. `shape` is that of the whole tensor,
/// "64x1x28x28", or empty: as many samples as there are. Throws Refusal(400) or (413).
Instances parse_raw(std::string_view body, const InputForm& form, ElementType type,
                    std::string_view shape);

/// "f32" or "u8". Throws Refusal(400).
ElementType element_type(std::string_view name);

}  // namespace fast::serve
