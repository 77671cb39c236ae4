// NumPy files for tests, byte by byte as numpy.lib.format describes them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace fast::testing {

/// `descr`, `order` and `shape` as in the header: "<f4", "False", "(2, 3)".
inline std::string npy_head(const std::string& descr, const std::string& shape,
                            const std::string& order = "False") {
  std::string dictionary =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  dictionary.resize((10 + dictionary.size()) / 64 * 64 + 63 - 10, ' ');
  dictionary += '\n';
  std::string head("\x93NUMPY\x01\0", 8);
  head += static_cast<char>(dictionary.size() & 255U);
  head += static_cast<char>(dictionary.size() >> 8U);
  return head + dictionary;
}

template <class T>
std::string npy_bytes(const std::string& descr, const std::string& shape,
                      const std::vector<T>& values) {
  std::string bytes = npy_head(descr, shape);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

}  // namespace fast::testing
