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
  /// uint8 stays bytes; float32 and float64 become float, int32 and int64 stay whole numbers.
  std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<std::int64_t>> values;
};

/// Of the bytes of a file. Throws Error(data), which begins with "numpy: NAME", for another format,
/// another element type, Fortran order, pickled objects and bytes that are missing or left over.
NpyArray parse_npy(std::string_view bytes, std::string_view name);

}  // namespace fast::data
