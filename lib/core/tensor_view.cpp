#include <fmt/ranges.h>
#include <fast/core/error.hpp>
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

std::string describe(const TensorView& view) {
  return fmt::format("\"{}\" [{}] {}{}", view.name, fmt::join(view.shape, "x"), name(view.dtype),
                     view.role == Role::buffer ? " buffer" : "");
}

}  // namespace fast
