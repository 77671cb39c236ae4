#include "core/toml.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/message.hpp"

namespace fast {
namespace {

// Of text that parses. TOML has no letters but ASCII outside strings and comments.
void check_letters(const std::string& text, const TomlOrigin& origin) {
  int line = 1;
  std::string closing;  // what ends the string or comment that is open
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto follows = [&](const std::string& wanted) {
      return text.compare(at, wanted.size(), wanted) == 0;
    };
    if (c == '\n') {
      ++line;
      if (closing.size() == 1) closing.clear();
    } else if (!closing.empty() && !follows(closing)) {
      const bool escapes =
          c == '\\' && closing[0] == '"' && at + 1 < text.size() && text[at + 1] != '\n';
      if (escapes) ++at;
    } else if (!closing.empty()) {
      at += closing.size() - 1;
      // A string in three quotes may end with up to two more.
      const std::size_t end = closing.size() == 3 ? at + 2 : at;
      while (at < end && at + 1 < text.size() && text[at + 1] == c) ++at;
      closing.clear();
    } else if (c == '#') {
      closing.assign(1, '\n');
    } else if (c == '"' || c == '\'') {
      closing.assign(follows(std::string(3, c)) ? 3 : 1, c);
      at += closing.size() - 1;
    } else {
      require(static_cast<unsigned char>(c) < 0x80, origin.kind,
              "{}: {}:{}: a letter that is not ASCII outside of strings and comments; put it in "
              "quotes or leave it out",
              origin.who, origin.path, line);
    }
  }
}

/// What a text without quotes is taken for depends on its first letter.
bool begins_like_text(std::string_view description) {
  return description.ends_with("could not determine value type") ||
         description.find("parsing boolean") != std::string_view::npos ||
         description.find("expected 'inf'") != std::string_view::npos ||
         description.find("expected 'nan'") != std::string_view::npos;
}

toml::table parsed(const std::string& text, const TomlOrigin& origin) {
  toml::parse_result result = toml::parse(std::string_view(text), std::string_view(origin.path));
  if (result) return std::move(result).table();
  const toml::parse_error& found = result.error();
  fail(origin.kind, "{}: {}:{}:{}: {}{}", origin.who, origin.path, found.source().begin.line,
       found.source().begin.column, found.description(),
       begins_like_text(found.description()) ? "; a text needs quotes" : "");
}

}  // namespace

// toml++ 3.3 runs into undefined behavior on some letters outside strings and comments. Which are
// outside is sure only where the syntax is right: it is looked at without them first.
toml::table toml_table(const std::string& given, const TomlOrigin& origin) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // Windows programs write it
  const std::string text =
      given.starts_with(byte_order_mark) ? given.substr(byte_order_mark.size()) : given;
  std::string ascii = text;
  std::ranges::replace_if(
      ascii, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '_');
  toml::table table = parsed(ascii, origin);
  if (ascii == text) return table;
  check_letters(text, origin);
  return parsed(text, origin);
}

std::string text_of_file(const std::string& path, std::string_view who, std::string_view advice) {
  const std::string problem = why_unreadable_file(path);
  require(problem.empty(), ErrorKind::data, "{}: {} cannot be read: {}; {}", who, path, problem,
          advice);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  require(file.good(), ErrorKind::data, "{}: {} cannot be read; {}", who, path, advice);
  return std::move(text).str();
}

std::string toml_type(const toml::node& node) {
  constexpr const char* types[] = {"nothing",      "table",    "list",       "string",
                                   "whole number", "fraction", "truth value"};
  const auto type = static_cast<std::size_t>(node.type());
  return type < std::size(types) ? types[type] : "date or time";
}

}  // namespace fast
