// Small functions of texts. Letters are those of ASCII, in every locale.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
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

/// True if the whole text is a number in the range of `value`, which then has it.
template <class Number>
bool reads(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr char in_small_letters(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = in_small_letters(c);
  return small;
}

inline std::string with_underscores(std::string_view name) {
  std::string result(name);
  std::ranges::replace(result, '-', '_');
  return result;
}

}  // namespace fast
