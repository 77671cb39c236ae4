// NumPy's format for one array (numpy.lib.format, versions 1 to 3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fast::data {

struct NpyArray {
  std::vector<std::int64_t> shape;  ///< row-major; empty: one value
  /// uint8 stays bytes. Floats of 16, 32 and 64 bits become float. Other integers, and bool as 0
  /// and 1, become whole numbers; uint64 above 2⁶³ - 1 wraps.
  std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<std::int64_t>> values;
};

/// Reads the bytes of a file, of either byte order, in C or in Fortran order. Throws Error(data),
/// which begins with "numpy: NAME", for another format, another element type, pickled objects and
/// bytes that are missing or left over.
NpyArray parse_npy(std::string_view bytes, std::string_view name);

}  // namespace fast::data
