#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/augment.hpp>

namespace fast::data {
namespace {

std::int64_t shift(int padding, Rng& rng) {
  return static_cast<std::int64_t>(rng.below(2 * static_cast<std::uint64_t>(padding) + 1)) -
         padding;
}

}  // namespace

void augment(std::span<float> image, const std::vector<std::int64_t>& shape,
             const Augmentation& augmentation, Rng& rng) {
  require(shape.size() == 3, ErrorKind::argument,
          "augment: samples with {} sides; images have channels, rows and columns", shape.size());
  require(augmentation.padding >= 0, ErrorKind::argument,
          "augment: padding {}; it must be 0 or more", augmentation.padding);
  const std::int64_t rows = shape[1], columns = shape[2];
  const std::int64_t down = shift(augmentation.padding, rng);
  const std::int64_t right = shift(augmentation.padding, rng);
  const bool flip = augmentation.flip && rng.below(2) == 1;
  const std::vector<float> old(image.begin(), image.end());
  for (std::int64_t plane = 0; plane < shape[0]; ++plane) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t from_r = r + down, from_c = (flip ? columns - 1 - c : c) + right;
        const bool inside = from_r >= 0 && from_r < rows && from_c >= 0 && from_c < columns;
        const auto at = [&](std::int64_t row, std::int64_t column) {
          return static_cast<std::size_t>((plane * rows + row) * columns + column);
        };
        image[at(r, c)] = inside ? old[at(from_r, from_c)] : 0.0F;
      }
    }
  }
}

}  // namespace fast::data
