// How payloads lie in a device's memory: three images, one per slot. An image has vectors, the
// weights beside them, and the number of its publication.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/exchange/exchange.hpp>

#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// Offsets and lengths in bytes.
class ImageLayout {
 public:
  /// `weights_beside` as in Staging.
  ImageLayout(const PayloadShape& shape, bool weights_beside) : shape_(shape) {
    if (!weights_beside) shape_.weights_bytes = 0;
  }

  /// Of what the images have.
  const PayloadShape& shape() const { return shape_; }
  std::size_t part_bytes() const { return slot_count * image_bytes(); }
  std::size_t image_bytes() const {
    return round_up(stamp_offset() + sizeof(std::uint64_t), page_bytes);
  }
  std::size_t image_offset(std::uint64_t sequence) const {
    return sequence % slot_count * image_bytes();
  }
  std::size_t weights_offset() const {
    return static_cast<std::size_t>(shape_.vectors) * shape_.stride_bytes();
  }
  /// Of the publication's number in an image: 0 while the image is written.
  std::size_t stamp_offset() const {
    return round_up(weights_offset() + shape_.weights_bytes, sizeof(std::uint64_t));
  }

  template <class Byte, class Scalar>
  BasicPayload<Byte, Scalar> payload(Byte* image, Scalar* scalars) const {
    return {image, scalars, shape_.stride_bytes(),
            shape_.weights_bytes > 0 ? image + weights_offset() : nullptr};
  }

 private:
  PayloadShape shape_;
};

}  // namespace fast::exchange
