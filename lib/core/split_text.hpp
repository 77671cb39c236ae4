// A text in parts.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace fast {

/// The parts between separators: one more than there are separators. They refer to `text`.
inline std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace fast
