#include <fmt/ranges.h>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/core/tensor_view.hpp>

namespace fast {

std::size_t TensorView::element_count() const {
  std::size_t count = 1;
  for (const std::int64_t side : shape) {
    require(side >= 0, ErrorKind::argument, "TensorView: \"{}\" has a negative side {}", name,
            side);
    require(!__builtin_mul_overflow(count, static_cast<std::size_t>(side), &count),
            ErrorKind::argument, "TensorView: \"{}\" has more elements than 2^64", name);
  }
  return count;
}

std::size_t TensorView::size_bytes() const { return element_count() * fast::size_bytes(dtype); }

bool TensorView::is_contiguous() const {
  if (strides.empty()) return true;
  if (strides.size() != shape.size()) return false;
  std::int64_t expected = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] > 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

std::string describe(Device device) {
  if (device.kind == Device::Kind::host) return "host memory";
  return fmt::format("the memory of device {}", device.index);
}

std::string describe(const TensorView& view) {
  return fmt::format("\"{}\" [{}] {}{}", printable(view.name), fmt::join(view.shape, "x"),
                     name(view.dtype), view.role == Role::buffer ? " buffer" : "");
}

}  // namespace fast
