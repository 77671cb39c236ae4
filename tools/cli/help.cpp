#include "cli/help.hpp"

#include <algorithm>

namespace tools {

using namespace fast::options;

std::string cell(std::string_view from) {
  std::string text(from);
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, 1, '\\');
  }
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 4) {
    text.replace(at, 1, "&lt;");
  }
  return text;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string result;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    at = end + 1;
  }
  return result;
}

std::string placeholder(const OptionSpec& row) {
  if (!row.names.empty()) return "NAME";
  switch (row.kind) {
    case Kind::flag:
      return "";
    case Kind::integer:
      return "N";
    case Kind::number:
      return "X";
    case Kind::mixed:
      return "N|TEXT";
    case Kind::mixed_number:
      return "X|TEXT";
    default:
      return "TEXT";
  }
}

std::string default_of(const OptionSpec& row) {
  if (row.kind == Kind::flag || row.initial.empty()) return {};
  return row.initial.front();
}

std::string full_help(const OptionSpec& row) {
  const bool all_told = std::all_of(
      row.names.begin(), row.names.end(),
      [&](const std::string& name) { return row.help.find(name) != std::string::npos; });
  return all_told ? row.help : fmt::format("{}: {}", row.help, row.required);
}

}  // namespace tools
