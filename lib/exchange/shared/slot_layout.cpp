#include "exchange/shared/slot_layout.hpp"

#include <algorithm>
#include <fast/core/memory.hpp>

#include "exchange/shared/worker_header.hpp"

namespace fast {

std::size_t PayloadShape::stride_bytes() const {
  return round_up(vector_bytes, vector_bytes < page_bytes ? cache_line_bytes : page_bytes);
}

std::size_t PayloadShape::vectors_bytes() const {
  return static_cast<std::size_t>(vectors - 1) * stride_bytes() + vector_bytes;
}

std::size_t PayloadShape::payload_bytes() const {
  return static_cast<std::size_t>(vectors) * vector_bytes +
         static_cast<std::size_t>(scalars) * sizeof(double);
}

}  // namespace fast

namespace fast::exchange {
namespace {

constexpr std::size_t header_bytes = round_up(sizeof(WorkerHeader), page_bytes);

/// Vectors begin at multiples of this: of a page if they are long.
std::size_t boundary(const PayloadShape& shape) {
  const bool small = std::max(shape.vector_bytes, shape.weights_bytes) < page_bytes;
  return small ? cache_line_bytes : page_bytes;
}

}  // namespace

std::size_t SlotLayout::part_bytes() const { return header_bytes + slot_count * slot_bytes(); }

std::size_t SlotLayout::slot_offset(std::uint64_t sequence) const {
  return header_bytes + sequence % slot_count * slot_bytes();
}

std::size_t SlotLayout::slot_bytes() const {
  return round_up(weights_offset() + shape_.weights_bytes, boundary(shape_));
}

std::size_t SlotLayout::data_offset() const {
  return round_up(static_cast<std::size_t>(shape_.scalars) * sizeof(double), boundary(shape_));
}

std::size_t SlotLayout::message_bytes() const { return data_offset() + shape_.vectors_bytes(); }

std::size_t SlotLayout::weights_offset() const {
  return round_up(message_bytes(), boundary(shape_));
}

}  // namespace fast::exchange
