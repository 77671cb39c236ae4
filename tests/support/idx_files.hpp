// Small IDX files for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fast::testing {

using Bytes = std::vector<std::uint8_t>;

inline void append_word(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

/// Pixel i of the file is (7 i) mod 256.
inline Bytes idx_images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns) {
  Bytes bytes;
  for (const std::uint32_t word : {0x803U, count, rows, columns}) append_word(bytes, word);
  for (std::uint32_t i = 0; i < count * rows * columns; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(7 * i));
  }
  return bytes;
}

/// Label i is i mod classes.
inline Bytes idx_labels(std::uint32_t count, std::uint32_t classes = 10) {
  Bytes bytes;
  append_word(bytes, 0x801);
  append_word(bytes, count);
  for (std::uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i % classes));
  return bytes;
}

inline void write_plain(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline void write_gzip(const std::filesystem::path& path, const Bytes& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

inline Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace fast::testing
