// Made-up files in CIFAR-10's binary layout, for tests: labels count up, pixels follow a formula.
#pragma once

#include <filesystem>
#include <fstream>

namespace fast::testing {

inline int cifar_pixel(std::size_t record, std::size_t e) {
  return static_cast<int>((31 * record + 7 * e) % 256);
}

/// `count` records, the first of label `first`.
inline void write_cifar(const std::filesystem::path& path, std::size_t count, std::size_t first) {
  std::ofstream file(path, std::ios::binary);
  for (std::size_t i = first; i < first + count; ++i) {
    file.put(static_cast<char>(i));
    for (std::size_t e = 0; e < 3072; ++e) file.put(static_cast<char>(cifar_pixel(i, e)));
  }
}

}  // namespace fast::testing
