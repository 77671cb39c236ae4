#include "exchange/shared/slot_layout.hpp"

#include <algorithm>

namespace fast {

std::size_t PayloadShape::stride_bytes() const {
  return round_up(vector_bytes, vector_bytes < page_bytes ? cache_line_bytes : page_bytes);
}

std::size_t PayloadShape::vectors_bytes() const {
  return static_cast<std::size_t>(vectors - 1) * stride_bytes() + vector_bytes;
}

}  // namespace fast

namespace fast::exchange {
namespace {

/// Vectors begin at multiples of this: of a page if they are long.
std::size_t boundary(const PayloadShape& shape) {
  const bool small = std::max(shape.vector_bytes, shape.weights_bytes) < page_bytes;
  return small ? cache_line_bytes : page_bytes;
}

}  // namespace

SlotLayout::SlotLayout(const PayloadShape& shape, bool keeps_copy)
    : shape_(shape),
      keeps_copy_(keeps_copy),
      stride_bytes_(shape.stride_bytes()),
      data_offset_(
          round_up(static_cast<std::size_t>(shape.scalars) * sizeof(double), boundary(shape))),
      message_bytes_(data_offset_ + shape.vectors_bytes()),
      weights_offset_(round_up(message_bytes_, boundary(shape))),
      slot_bytes_(round_up(weights_offset_ + shape.weights_bytes, boundary(shape))) {}

}  // namespace fast::exchange
