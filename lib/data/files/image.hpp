// Images in memory, from PNG and JPEG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fast/data/resize.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

struct Image {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::uint8_t> pixels;  ///< rows × columns × 3; gray ones have three equal values

  ImageSize size() const { return {rows, columns}; }
  /// As channels × rows × columns. `into` has the size of the pixels.
  void copy_planes(std::span<std::uint8_t> into) const;
};

/// Whatever the name's ending, the first bytes tell the format. Alpha is laid on black. Throws
/// Error(data), "NAME: cannot be read: ...", for bytes that are no whole PNG or JPEG image.
Image decode_image(std::string_view bytes, const std::string& name);

/// The same with another size, if one is given.
Image resized_image(Image image, const std::optional<ImageSize>& to);

/// Files of these endings are images: .png, .jpg, .jpeg, in small or capital letters.
bool has_image_ending(std::string_view name);

}  // namespace fast::data
