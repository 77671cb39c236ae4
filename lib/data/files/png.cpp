#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "data/files/image_formats.hpp"

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

}  // namespace fast::data
