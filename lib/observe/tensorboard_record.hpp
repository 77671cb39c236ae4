// Records of TensorFlow's event files: length, check sum, bytes, check sum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fast::observe {

/// CRC-32C (Castagnoli), as in RFC 3720.
std::uint32_t crc32c(std::string_view bytes);

/// `bytes` as a record.
std::string record(std::string_view bytes);

}  // namespace fast::observe
