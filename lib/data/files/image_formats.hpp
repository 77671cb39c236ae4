// One decoder for each format of images. decode_image() chooses by the first bytes.
#pragma once

#include <string>
#include <string_view>

#include "data/files/image.hpp"

namespace fast::data {

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
