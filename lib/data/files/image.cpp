#include "data/files/image.hpp"

#include <cstdio>
// After cstdio, which it needs.
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csetjmp>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <memory>

namespace fast::data {
namespace {

constexpr std::string_view png_begin = "\x89PNG\r\n\x1a\n", jpeg_begin = "\xff\xd8\xff";
constexpr std::int64_t most_pixels = std::int64_t{1} << 28;

[[noreturn]] void refuse_image(const std::string& name, std::string_view why) {
  fail(ErrorKind::data, "image {}: cannot be read: {}; copy the file again", printable(name),
       printable(why));
}

void check_pixels(std::int64_t rows, std::int64_t columns, const std::string& name) {
  if (rows > 0 && columns > 0 && rows <= most_pixels / columns) return;
  refuse_image(name, fmt::format("{} rows of {} pixels", rows, columns));
}

Image decode_png(std::string_view bytes, const std::string& name) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&png, png_image_free);
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    refuse_image(name, png.message);
  check_pixels(png.height, png.width, name);
  png.format = PNG_FORMAT_RGB;
  Image image{png.height, png.width, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(png))};
  const png_color black{};
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0)
    refuse_image(name, png.message);
  return image;
}

/// libjpeg returns from its functions by a jump when it cannot go on.
struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands out its address
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> text;

  static JpegErrors& of(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }
  static void note(j_common_ptr info) {
    JpegErrors& errors = of(info);
    if (errors.text[0] == '\0') errors.manager.format_message(info, errors.text.data());
  }
  [[noreturn]] static void leave(j_common_ptr info) {
    note(info);
    std::longjmp(of(info).jump, 1);
  }
  /// Level -1 is a warning: the image is damaged, and libjpeg makes something up.
  static void hear(j_common_ptr info, int level) {
    if (level < 0) leave(info);
  }
};

/// What lives across a jump: nothing of it has a destructor that a jump would leave out.
struct JpegDecoder {
  jpeg_decompress_struct info{};
  JpegErrors errors{};

  JpegDecoder() {
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = JpegErrors::leave;
    errors.manager.emit_message = JpegErrors::hear;
    errors.manager.output_message = JpegErrors::note;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// False when libjpeg could not go on.
  bool begin(const unsigned char* bytes, unsigned long count) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes, count);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    jpeg_calc_output_dimensions(&info);
    return true;
  }
  bool read(std::uint8_t* pixels) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels + std::size_t{info.output_scanline} * info.output_width * 3;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
};

Image decode_jpeg(std::string_view bytes, const std::string& name) {
  JpegDecoder decoder;
  if (!decoder.begin(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()))
    refuse_image(name, decoder.errors.text.data());
  check_pixels(decoder.info.output_height, decoder.info.output_width, name);
  Image image{decoder.info.output_height, decoder.info.output_width, {}};
  image.pixels.resize(static_cast<std::size_t>(image.rows * image.columns) * 3);
  if (!decoder.read(image.pixels.data())) refuse_image(name, decoder.errors.text.data());
  return image;
}

}  // namespace

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
  refuse_image(name, "it begins neither as a PNG nor as a JPEG image");
}

bool has_image_ending(std::string_view name) {
  std::string small(name);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small.ends_with(".png") || small.ends_with(".jpg") || small.ends_with(".jpeg");
}

}  // namespace fast::data
