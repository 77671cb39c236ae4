// Images in memory, from PNG and JPEG.
#pragma once

#include <fast/data/resize.hpp>

#include <cstdint>
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

/// Decodes an image. The first bytes determine the format, whatever the name's ending. The pixels
/// are those of Pillow's convert("RGB"): alpha is left out, and no gamma or profile is applied. 16
/// bits become their high byte, also of gray images, which Pillow clips. CMYK becomes RGB as in
/// Pillow. An image that EXIF calls turned or mirrored is laid upright. Throws Error(data), "NAME:
/// cannot be read: ...", for bytes that are no whole PNG or JPEG image.
Image decode_image(std::string_view bytes, const std::string& name);

/// The same with another size, if one is given.
Image resized_image(Image image, const std::optional<ImageSize>& to);

/// True for names that end with .png, .jpg or .jpeg, in small or capital letters.
bool has_image_ending(std::string_view name);

/// True for names of images in formats that are not read, as .bmp, .tif and .gif.
bool is_other_image(std::string_view name);

// One decoder for each format of images. decode_image() chooses by the first bytes.

// Each throws Error(data), "image NAME: cannot be read: ...", for bytes that are no whole image.
Image decode_png(std::string_view bytes, const std::string& name);
Image decode_jpeg(std::string_view bytes, const std::string& name);
Image decode_webp(std::string_view bytes, const std::string& name);

[[noreturn]] void refuse_image(const std::string& name, std::string_view why,
                               std::string_view advice = "copy the file again");

/// Refuses sizes of 0, and sizes whose pixels would fill the memory.
void check_pixels(std::int64_t rows, std::int64_t columns, const std::string& name);

/// Turns and mirrors an image as EXIF's tag "orientation" says: 1 is upright, 2 to 8 are the other
/// ways to lay a rectangle. Other numbers change nothing.
Image upright(Image image, int orientation);

}  // namespace fast::data
