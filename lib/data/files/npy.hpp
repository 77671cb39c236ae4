// NumPy's format for one array (numpy.lib.format, versions 1 to 3).
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/files/origins.hpp"

namespace fast::data {

/// The first bytes of such a file.
inline constexpr std::string_view npy_magic = "\x93NUMPY";

struct NpyArray {
  std::vector<std::int64_t> shape;  ///< row-major; empty: one value
  /// uint8 stays bytes. Floats of 16 and 32 bits become float, uint64 double. Other integers, and
  /// bool as 0 and 1, become whole numbers.
  std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<std::int64_t>,
               std::vector<double>>
      values;
  /// In place of values: the elements of an array of texts, without the zeros that fill them up.
  /// Those of type U become UTF-8, those of type S are bytes as they are.
  std::vector<std::string> texts = {};
};

/// Reads the bytes of a file, of either byte order, in C or in Fortran order. Throws Error(data),
/// which begins with "numpy: NAME", for another format, another element type, pickled objects and
/// bytes that are missing or left over.
NpyArray parse_npy(std::string_view bytes, std::string_view name);

// Samples of NumPy arrays, in the shapes that models take.

/// Samples in the form of a Dataset.
struct NpySamples {
  std::vector<std::int64_t> shape;
  Dataset::Values values;
  std::size_t count = 0;
  std::vector<double> origins = {};  ///< see Normalization
};

/// The first side counts samples; their shapes are as fast/data/numpy.hpp says. Values are stored
/// less `origins`; without these, less origins_of() them. Throws Error(data), which begins with
/// "numpy: NAME", for an array without sides or samples and for values that are not finite.
NpySamples npy_samples(NpyArray array, const std::string& name,
                       const std::optional<std::vector<double>>& origins = std::nullopt);

/// The channels of samples of that shape.
ChannelForm channels_of(const std::vector<std::int64_t>& sample, const std::string& name);

}  // namespace fast::data
