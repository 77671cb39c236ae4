// Small images for tests, as the libraries of their formats write them.
#pragma once

#include <cstdio>
// After cstdio, which it needs.
#include <jpeglib.h>
#include <png.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fast::testing {

/// A JPEG image whose pixels all have the value `gray`, of 1 or 3 channels.
inline std::string jpeg_bytes(unsigned rows, unsigned columns, int gray, int channels = 3) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = columns;
  info.image_height = rows;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> pixels(columns * static_cast<unsigned>(channels),
                                   static_cast<std::uint8_t>(gray));
  while (info.next_scanline < rows) {
    JSAMPROW row = pixels.data();
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::string bytes(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return bytes;
}

/// A PNG image with `pixels` of three channels.
inline std::string png_bytes(unsigned rows, unsigned columns,
                             const std::vector<std::uint8_t>& pixels) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = columns;
  png.height = rows;
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&png, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&png, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

}  // namespace fast::testing
