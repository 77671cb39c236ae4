#include "stream/broker.hpp"

#include <algorithm>

namespace fast::stream {
namespace {

/// Takes the part before the next dot.
std::string_view take_part(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view part = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  return part;
}

bool is_plain(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return c > ' ' && c != 0x7f && c != '*' && c != '>';
  });
}

}  // namespace

bool is_subject(std::string_view text, bool wildcards) {
  if (text.empty() || text.ends_with('.')) return false;
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    const bool is_wild = wildcards && (part == "*" || (part == ">" && text.empty()));
    if (!is_wild && !is_plain(part)) return false;
  }
  return true;
}

bool subject_matches(std::string_view filter, std::string_view subject) {
  while (!filter.empty() && !subject.empty()) {
    const std::string_view wanted = take_part(filter), part = take_part(subject);
    if (wanted == ">") return true;
    if (wanted != "*" && wanted != part) return false;
  }
  return filter.empty() && subject.empty();
}

}  // namespace fast::stream
