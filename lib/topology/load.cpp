#include <topology/matrix_market.hpp>
#include <topology/rule_reader.hpp>

#include <algorithm>
#include <fast/core/message.hpp>
#include <fast/topology/load.hpp>
#include <fstream>
#include <sstream>

namespace fast {
namespace {

std::string text_of(const std::string& path) {
  const std::string problem = why_unreadable_file(path);
  require(problem.empty(), ErrorKind::data,
          "Topology::load: {} cannot be read: {}; give a path to a .toml or .mtx file, or a name",
          path, problem);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  require(file.good(), ErrorKind::data, "Topology::load: {} cannot be read", path);
  return std::move(text).str();
}

// Of text that parses. TOML has no letters but ASCII outside strings and comments.
void check_letters(const std::string& text, const std::string& path) {
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
      require(static_cast<unsigned char>(c) < 0x80, ErrorKind::topology,
              "Topology::load: {}:{}: a letter that is not ASCII outside of strings and comments; "
              "put it in quotes or leave it out",
              path, line);
    }
  }
}

toml::table parsed(const std::string& text, const std::string& path) {
  toml::parse_result result = toml::parse(std::string_view(text), std::string_view(path));
  if (result) return std::move(result).table();
  const toml::parse_error& found = result.error();
  fail(ErrorKind::topology, "Topology::load: {}:{}:{}: {}", path, found.source().begin.line,
       found.source().begin.column, found.description());
}

// toml++ 3.3 runs into undefined behavior on some letters outside strings and comments. Which are
// outside is sure only where the syntax is right: it is looked at without them first.
toml::table table_of(const std::string& text, const std::string& path) {
  std::string ascii = text;
  std::replace_if(
      ascii.begin(), ascii.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; },
      '_');
  toml::table table = parsed(ascii, path);
  if (ascii == text) return table;
  check_letters(text, path);
  return parsed(text, path);
}

}  // namespace

TopologyRule parse_topology(const std::string& text, const std::string& path) {
  if (path.ends_with(".mtx")) return rule_in_matrix(path, text);
  require(path.ends_with(".toml"), ErrorKind::data,
          "Topology::load: {} does not end in .toml or .mtx, the formats that are read", path);
  return rule_in_table(path, table_of(text, path));
}

TopologyRule load_topology(const std::string& path) { return parse_topology(text_of(path), path); }

}  // namespace fast
