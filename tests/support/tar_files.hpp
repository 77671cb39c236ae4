// Tar archives for tests, byte by byte as POSIX.1-1988 (ustar) describes them.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <string>

namespace fast::testing {

/// One member: a header and the contents, filled up to blocks.
inline std::string tar_member(const std::string& name, const std::string& contents,
                              char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  header.replace(124, 11, fmt::format("{:011o}", contents.size()));
  header.replace(136, 11, "00000000000");
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 6, std::string("ustar\0", 6));
  header.replace(263, 2, "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  std::string member = header + contents;
  member.resize((member.size() + 511) / 512 * 512, '\0');
  return member;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace fast::testing
