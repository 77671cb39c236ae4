#include <topology/matrix_market.hpp>
#include <topology/rule_reader.hpp>

#include <fast/topology/load.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fast {
namespace {

std::string text_of(const std::string& path) {
  std::error_code error;
  require(std::filesystem::is_regular_file(path, error), ErrorKind::data,
          "Topology::load: there is no file {}; give a path to a .toml or .mtx file, or a name",
          path);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  require(file.good(), ErrorKind::data, "Topology::load: {} cannot be read", path);
  return std::move(text).str();
}

// toml++ 3.3 runs into undefined behavior on some letters outside strings and comments, where TOML
// has none but ASCII.
void check_letters(const std::string& text, const std::string& path) {
  int line = 1;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      quoted = false;
    }
    quoted = quoted || c == '#' || c == '"' || c == '\'';
    require(
        quoted || static_cast<unsigned char>(c) < 0x80, ErrorKind::topology,
        "Topology::load: {}:{}: a letter that is not ASCII outside of strings and comments; put "
        "it in quotes or leave it out",
        path, line);
  }
}

}  // namespace

TopologyRule parse_topology(const std::string& text, const std::string& path) {
  if (path.ends_with(".mtx")) return rule_in_matrix(path, text);
  require(path.ends_with(".toml"), ErrorKind::data,
          "Topology::load: {} does not end in .toml or .mtx, the formats that are read", path);
  check_letters(text, path);
  const toml::parse_result parsed = toml::parse(std::string_view(text), std::string_view(path));
  if (!parsed) {
    const toml::parse_error& found = parsed.error();
    fail(ErrorKind::topology, "Topology::load: {}:{}:{}: {}", path, found.source().begin.line,
         found.source().begin.column, found.description());
  }
  return rule_in_table(path, parsed.table());
}

TopologyRule load_topology(const std::string& path) { return parse_topology(text_of(path), path); }

}  // namespace fast
