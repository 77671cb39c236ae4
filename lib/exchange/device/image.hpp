// How payloads lie in a device's memory: two or three images. An image has vectors, the weights
// beside them, and the number of its publication.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/exchange/exchange.hpp>

#include "exchange/device/staged.hpp"
#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// Offsets and lengths in bytes.
class ImageLayout {
 public:
  explicit ImageLayout(const Staging& staging)
      : shape_(staging.shape), count_(staging.exact ? 2 : slot_count) {
    if (staging.weights != Staging::Weights::beside) shape_.weights_bytes = 0;
  }

  /// Of what the images have.
  const PayloadShape& shape() const { return shape_; }
  /// How many of the latest publications stay.
  std::uint64_t count() const { return count_; }
  std::size_t part_bytes() const { return count_ * image_bytes(); }
  std::size_t image_bytes() const {
    return round_up(stamp_offset() + sizeof(std::uint64_t), page_bytes);
  }
  std::size_t image_offset(std::uint64_t sequence) const {
    return sequence % count_ * image_bytes();
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
  std::uint64_t count_;
};

}  // namespace fast::exchange
