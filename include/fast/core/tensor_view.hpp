// A named view of a framework's tensor: what the library needs to know of a model, and all it
// needs.
#pragma once

#include <fast/core/element.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fast {

/// Where a tensor's memory is.
struct Device {
  enum class Kind : std::uint8_t { host, cuda };
  Kind kind = Kind::host;
  int index = 0;
  bool operator==(const Device&) const = default;
};
/// "host memory", "the memory of device 1", for messages.
std::string describe(Device device);

/// Parameters are trained; buffers (batch-norm statistics) are only carried along and averaged.
enum class Role : std::uint8_t { parameter, buffer };

/// Non-owning view of one tensor. The memory stays the framework's and must stay where it is for as
/// long as the view is in use.
struct TensorView {
  std::string name;
  void* data = nullptr;
  std::vector<std::int64_t> shape;  ///< row-major; empty for a scalar
  DType dtype = DType::f32;
  Role role = Role::parameter;
  Device device{};
  /// Strides in elements, one a side; empty: contiguous. Others than those of contiguous row-major
  /// memory are refused where the tensor is read.
  std::vector<std::int64_t> strides{};

  /// Product of the shape; 1 for a scalar. Throws Error on negative sides or overflow.
  std::size_t element_count() const;
  std::size_t size_bytes() const;
  bool is_contiguous() const;
};

/// "name [120x400] f32", for messages.
std::string describe(const TensorView& view);

/// Views of raw memory, for a user's own training loop.
template <class T>
TensorView view_of(std::string name, std::span<T> values, Role role = Role::parameter) {
  return {std::move(name),
          values.data(),
          {static_cast<std::int64_t>(values.size())},
          dtype_of<T>,
          role,
          Device{},
          {}};
}

}  // namespace fast
