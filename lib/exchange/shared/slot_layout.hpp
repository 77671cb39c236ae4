// How a worker's part of shared memory is laid out: a header, then three slots, then room for a
// copy of one slot, where such copies are kept. A slot has a message, which is scalars and vectors,
// and then the weights, if those are beside the message.
#pragma once

#include <fast/exchange/exchange.hpp>

#include "exchange/shared/worker_header.hpp"

namespace fast::exchange {

/// Offsets and lengths in bytes.
class SlotLayout {
 public:
  explicit SlotLayout(const PayloadShape& shape, bool keeps_copy = false);

  const PayloadShape& shape() const { return shape_; }

  // In a worker's part.
  std::size_t part_bytes() const { return kept_offset() + (keeps_copy_ ? slot_bytes_ : 0); }
  /// Of the slot of publication `sequence`.
  std::size_t slot_offset(std::uint64_t sequence) const {
    return header_bytes + sequence % slot_count * slot_bytes_;
  }
  std::size_t slot_bytes() const { return slot_bytes_; }
  bool keeps_copy() const { return keeps_copy_; }
  std::size_t kept_offset() const { return header_bytes + slot_count * slot_bytes_; }

  // In a slot.
  std::size_t data_offset() const { return data_offset_; }  ///< of vector 0
  std::size_t message_bytes() const { return message_bytes_; }
  std::size_t weights_offset() const { return weights_offset_; }

  /// The payload in a slot that begins at `slot`.
  MutablePayload payload(std::byte* slot) const {
    return {slot + data_offset_, reinterpret_cast<double*>(slot), stride_bytes_,
            shape_.weights_bytes > 0 ? slot + weights_offset_ : nullptr};
  }

 private:
  static constexpr std::size_t header_bytes = round_up(sizeof(WorkerHeader), page_bytes);

  PayloadShape shape_;
  bool keeps_copy_;
  std::size_t stride_bytes_, data_offset_, message_bytes_, weights_offset_, slot_bytes_;
};

}  // namespace fast::exchange
