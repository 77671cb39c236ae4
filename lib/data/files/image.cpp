#include "data/files/image.hpp"

#include <algorithm>
#include <array>
#include <fast/core/error.hpp>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast::data {
namespace {

constexpr std::string_view png_begin = "\x89PNG\r\n\x1a\n", jpeg_begin = "\xff\xd8\xff";
constexpr std::int64_t most_pixels = std::int64_t{1} << 28;

}  // namespace

void refuse_image(const std::string& name, std::string_view why, std::string_view advice) {
  fail(ErrorKind::data, "image {}: cannot be read: {}; {}", printable(name), printable(why),
       advice);
}

void check_pixels(std::int64_t rows, std::int64_t columns, const std::string& name) {
  if (rows > 0 && columns > 0 && rows <= most_pixels / columns) return;
  refuse_image(name, fmt::format("{} rows of {} pixels", rows, columns));
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool turned = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image result{turned ? image.columns : image.rows, turned ? image.rows : image.columns,
               std::vector<std::uint8_t>(image.pixels.size())};
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t row = 0; row < result.rows; ++row) {
    for (std::int64_t column = 0; column < result.columns; ++column, to += 3) {
      std::int64_t y = turned ? column : row, x = turned ? row : column;
      if (from_below) y = image.rows - 1 - y;
      if (from_right) x = image.columns - 1 - x;
      std::copy_n(image.pixels.data() + 3 * (y * image.columns + x), 3, to);
    }
  }
  return result;
}

void Image::copy_planes(std::span<std::uint8_t> into) const {
  const std::size_t plane = pixels.size() / 3;
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      into[channel * plane + i] = pixels[3 * i + channel];
  }
}

Image resized_image(Image image, const std::optional<ImageSize>& to) {
  if (!to || image.size() == *to) return image;
  std::vector<std::uint8_t> planes(image.pixels.size());
  image.copy_planes(planes);
  const Resizer resizer(image.size(), *to);
  std::vector<std::uint8_t> changed(3 * resizer.to_size());
  resizer.resize(std::span<const std::uint8_t>(planes), changed);
  Image result{to->rows, to->columns, std::vector<std::uint8_t>(changed.size())};
  for (std::size_t i = 0; i < resizer.to_size(); ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      result.pixels[3 * i + channel] = changed[channel * resizer.to_size() + i];
  }
  return result;
}

Image decode_image(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(png_begin)) return decode_png(bytes, name);
  if (bytes.starts_with(jpeg_begin)) return decode_jpeg(bytes, name);
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP"))
    return decode_webp(bytes, name);
  refuse_image(name, "it begins neither as a PNG nor as a JPEG or WebP image",
               "save it in one of these formats");
}

namespace {

template <std::size_t N>
bool ends_with_one_of(std::string_view name, const std::array<std::string_view, N>& endings) {
  const std::string small = in_small_letters(name);
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return small.ends_with(ending); });
}

}  // namespace

bool has_image_ending(std::string_view name) {
  return ends_with_one_of(name, std::array<std::string_view, 4>{".png", ".jpg", ".jpeg", ".webp"});
}

bool is_other_image(std::string_view name) {
  return ends_with_one_of(
      name, std::array<std::string_view, 10>{".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm",
                                             ".avif", ".heic", ".jp2", ".jxl"});
}

}  // namespace fast::data
