// The parts of an ONNX file: messages of protocol buffers.
#pragma once

#include <bit>
#include <cstdint>
#include <fast/core/tensor_view.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fast::nn::onnx {

inline constexpr int operator_set = 15, ir_version = 8;

/// A message; onnx.proto gives the numbers of the fields.
class Message {
 public:
  Message& number(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& part(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

inline Message attribute(std::string_view name, std::int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
inline Message attribute(std::string_view name, float value) {
  return Message().text(1, name).real(2, value).number(20, 1);
}
inline Message attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  Message message = Message().text(1, name);
  for (const std::int64_t value : values) message.number(8, value);
  return message.number(20, 7);
}

inline constexpr int int64_type = 7;
inline int element_type(DType dtype) { return dtype == DType::f64 ? 11 : 1; }

/// Attributes of operators with a square window.
inline std::vector<Message> window(std::int64_t size, std::int64_t stride, std::int64_t padding) {
  const std::int64_t p = padding;
  return {attribute("kernel_shape", {size, size}), attribute("strides", {stride, stride}),
          attribute("pads", std::vector<std::int64_t>{p, p, p, p})};
}

}  // namespace fast::nn::onnx
