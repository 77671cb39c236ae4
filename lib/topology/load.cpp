#include <fast/topology/load.hpp>

#include "topology/matrix_market.hpp"
#include "topology/rule_reader.hpp"

namespace fast {
namespace {

constexpr std::string_view who = "Topology::load";

}  // namespace

TopologyRule parse_topology(const std::string& text, const std::string& path) {
  if (path.ends_with(".mtx")) return rule_in_matrix(path, text);
  require(path.ends_with(".toml"), ErrorKind::data,
          "Topology::load: {} does not end in .toml or .mtx, the formats that are read", path);
  return rule_in_table(path, toml_table(text, {path, ErrorKind::topology, who}));
}

TopologyRule load_topology(const std::string& path) {
  return parse_topology(text_of_file(path, who, "give a path to a .toml or .mtx file, or a name"),
                        path);
}

}  // namespace fast
