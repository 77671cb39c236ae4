#include "data/files/image.hpp"

#include <png.h>
#include <webp/decode.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <utility>
#include <vector>

// After cstdio, which it needs.
#include <jpeglib.h>

namespace fast::data {
namespace {

/// libpng leaves its functions by a jump when it cannot go on. What lives across a jump has no
/// destructor that the jump would leave out.
class PngDecoder {
 public:
  explicit PngDecoder(std::string_view bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, ignore);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  const char* error() const { return text_.data(); }
  std::int64_t rows() const { return png_get_image_height(png_, info_); }
  std::int64_t columns() const { return png_get_image_width(png_, info_); }

  /// Asks for RGB with the numbers of the file: the high bytes of 16 bits, alpha left out, and no
  /// correction by gAMA or a profile. False when libpng could not go on.
  bool begin() {
    if (info_ == nullptr) return false;
    if (setjmp(jump_) != 0) return false;
    png_set_read_fn(png_, this, read);
    png_read_info(png_, info_);
    png_set_strip_16(png_);
    png_set_palette_to_rgb(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  bool read_rows(std::uint8_t** rows) {
    if (setjmp(jump_) != 0) return false;
    png_read_image(png_, rows);
    return true;
  }

 private:
  static PngDecoder& of(void* self) { return *static_cast<PngDecoder*>(self); }
  [[noreturn]] static void leave(png_structp png, png_const_charp text) {
    PngDecoder& decoder = of(png_get_error_ptr(png));
    std::strncpy(decoder.text_.data(), text, decoder.text_.size() - 1);
    std::longjmp(decoder.jump_, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void read(png_structp png, png_bytep into, std::size_t count) {
    std::string_view& rest = of(png_get_io_ptr(png)).rest_;
    if (count > rest.size()) png_error(png, "truncated");
    std::memcpy(into, rest.data(), count);
    rest.remove_prefix(count);
  }

  std::string_view rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  std::array<char, 128> text_{"libpng has no memory"};
};

}  // namespace

Image decode_png(std::string_view bytes, const std::string& name) {
  PngDecoder decoder(bytes);
  if (!decoder.begin()) refuse_image(name, decoder.error());
  check_pixels(decoder.rows(), decoder.columns(), name);
  Image image{decoder.rows(), decoder.columns(), {}};
  const auto row_bytes = static_cast<std::size_t>(image.columns) * 3;
  image.pixels.resize(static_cast<std::size_t>(image.rows) * row_bytes);
  std::vector<std::uint8_t*> rows;
  for (std::int64_t row = 0; row < image.rows; ++row)
    rows.push_back(image.pixels.data() + static_cast<std::size_t>(row) * row_bytes);
  if (!decoder.read_rows(rows.data())) refuse_image(name, decoder.error());
  return image;
}

namespace {

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

constexpr int exif_marker = JPEG_APP0 + 1;
constexpr unsigned longest_marker = 0xffff;

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

  /// Four channels are CMYK or YCCK, from which libjpeg makes CMYK alone.
  bool is_cmyk() const { return info.num_components == 4; }
  std::size_t channels() const { return is_cmyk() ? 4 : 3; }
  /// False when libjpeg could not go on.
  bool begin(const unsigned char* bytes, unsigned long count) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes, count);
    jpeg_save_markers(&info, exif_marker, longest_marker);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    jpeg_calc_output_dimensions(&info);
    return true;
  }
  bool read(std::uint8_t* pixels) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels + std::size_t{info.output_scanline} * info.output_width * channels();
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
};

/// round(a·b / 255), for bytes.
int product_of_bytes(int a, int b) {
  const int t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

/// JPEG files hold inverted CMYK, as Adobe's programs write it.
std::vector<std::uint8_t> rgb_of_inverted_cmyk(const std::vector<std::uint8_t>& cmyk) {
  std::vector<std::uint8_t> rgb(cmyk.size() / 4 * 3);
  for (std::size_t i = 0; i < cmyk.size() / 4; ++i) {
    const int light = cmyk[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c)
      rgb[3 * i + c] =
          static_cast<std::uint8_t>(light - product_of_bytes(255 - cmyk[4 * i + c], light));
  }
  return rgb;
}

/// Numbers of a TIFF header, which is in an EXIF marker; 0 beyond its end.
class TiffNumbers {
 public:
  explicit TiffNumbers(std::string_view bytes)
      : bytes_(bytes), is_big_endian_(bytes.starts_with("MM")) {}
  std::uint32_t at(std::size_t place, std::size_t size) const {
    if (place > bytes_.size() || size > bytes_.size() - place) return 0;
    std::uint32_t number = 0;
    for (std::size_t k = 0; k < size; ++k) {
      const std::size_t from = place + (is_big_endian_ ? k : size - 1 - k);
      number = number << 8U | static_cast<unsigned char>(bytes_[from]);
    }
    return number;
  }

 private:
  std::string_view bytes_;
  bool is_big_endian_;
};

/// The orientation in the first directory of an EXIF marker; 1 if it has none.
int orientation_of(std::string_view exif) {
  constexpr std::string_view begin{"Exif\0\0", 6};
  constexpr std::size_t entry_bytes = 12;
  constexpr std::uint32_t orientation_tag = 0x0112;
  if (!exif.starts_with(begin)) return 1;
  const TiffNumbers tiff(exif.substr(begin.size()));
  const std::size_t directory = tiff.at(4, 4), entries = tiff.at(directory, 2);
  for (std::size_t k = 0; k < entries; ++k) {
    const std::size_t entry = directory + 2 + k * entry_bytes;
    if (tiff.at(entry, 2) == orientation_tag) return static_cast<int>(tiff.at(entry + 8, 2));
  }
  return 1;
}

int orientation_of(const jpeg_decompress_struct& info) {
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr;
       marker = marker->next) {
    const int found =
        orientation_of({reinterpret_cast<const char*>(marker->data), marker->data_length});
    if (found != 1) return found;
  }
  return 1;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const std::string& name) {
  JpegDecoder decoder;
  if (!decoder.begin(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()))
    refuse_image(name, decoder.errors.text.data());
  check_pixels(decoder.info.output_height, decoder.info.output_width, name);
  Image image{decoder.info.output_height, decoder.info.output_width, {}};
  image.pixels.resize(static_cast<std::size_t>(image.rows * image.columns) * decoder.channels());
  const int orientation = orientation_of(decoder.info);
  if (!decoder.read(image.pixels.data())) refuse_image(name, decoder.errors.text.data());
  if (decoder.is_cmyk()) image.pixels = rgb_of_inverted_cmyk(image.pixels);
  return upright(std::move(image), orientation);
}

Image decode_webp(std::string_view bytes, const std::string& name) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(from, bytes.size(), &features) != VP8_STATUS_OK)
    refuse_image(name, "its header is damaged or truncated");
  if (features.has_animation != 0)
    refuse_image(name, "it is an animation", "save one of its images");
  check_pixels(features.height, features.width, name);
  Image image{features.height, features.width, {}};
  image.pixels.resize(static_cast<std::size_t>(image.rows * image.columns * 3));
  if (WebPDecodeRGBInto(from, bytes.size(), image.pixels.data(), image.pixels.size(),
                        3 * features.width) == nullptr)
    refuse_image(name, "its pixels are damaged or truncated");
  return image;
}

}  // namespace fast::data
