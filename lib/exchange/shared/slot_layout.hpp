// How a worker's part of shared memory is laid out: a header, then three slots. A slot has a
// message, which is scalars and vectors, and then the weights, if those are beside the message.
#pragma once

#include <cstdint>
#include <fast/exchange/exchange.hpp>

namespace fast::exchange {

inline constexpr std::uint64_t slot_count = 3;

/// Offsets and lengths in bytes.
class SlotLayout {
 public:
  explicit SlotLayout(const PayloadShape& shape) : shape_(shape) {}

  // In a worker's part.
  std::size_t part_bytes() const;
  /// Of the slot of publication `sequence`.
  std::size_t slot_offset(std::uint64_t sequence) const;
  std::size_t slot_bytes() const;

  // In a slot.
  std::size_t data_offset() const;  ///< of vector 0
  std::size_t message_bytes() const;
  std::size_t weights_offset() const;

  const PayloadShape& shape() const { return shape_; }

 private:
  PayloadShape shape_;
};

}  // namespace fast::exchange
