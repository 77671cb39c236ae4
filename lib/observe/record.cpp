#include "observe/record.hpp"

#include <array>

namespace fast::observe {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}

/// TensorFlow's: a check sum of bytes that contain check sums would be weak.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15U | crc << 17U) + 0xa282ead8U; }

template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t k = 0; k < sizeof number; ++k) {
    bytes += static_cast<char>(number >> (8 * k) & 0xffU);
  }
  return bytes;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = crc >> 8U ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
  }
  return ~crc;
}

std::string record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  std::string all = length + little_endian(masked(crc32c(length)));
  all += bytes;
  return all + little_endian(masked(crc32c(bytes)));
}

}  // namespace fast::observe
