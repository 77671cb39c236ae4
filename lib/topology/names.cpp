#include <fmt/ranges.h>
#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/schedules.hpp>
#include <fast/topology/stencil.hpp>
#include <filesystem>
#include <utility>

namespace fast {
namespace {

struct Entry {
  TopologyName shown;
  TopologyRule (*make)();
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {{"ring", "two neighbors, left and right"}, [] { return stencil::ring(); }},
      {{"directed_ring", "reads its left neighbor only"}, [] { return stencil::ring(true); }},
      {{"torus2d", "periodic grid, as square as N allows: 4 neighbors"},
       [] { return stencil::torus2d(); }},
      {{"torus3d", "periodic grid in three dimensions: 6 neighbors"},
       [] { return stencil::torus3d(); }},
      {{"grid1d", "open line: 2 neighbors, 1 at the ends"}, [] { return stencil::grid1d(); }},
      {{"grid2d", "open grid, as square as N allows: up to 4 neighbors"},
       [] { return stencil::grid2d(); }},
      {{"grid3d", "open grid in three dimensions: up to 6 neighbors"},
       [] { return stencil::grid3d(); }},
      {{"hypercube", "log2 N neighbors; N a power of two"}, stencil::hypercube},
      {{"complete", "everybody reads everybody"}, stencil::complete},
      {{"exponential", "reads those 1, 2, 4, ... places before it"}, stencil::exponential},
      {{"one_peer_exponential", "one of them a round, in turn: exact after log2 N rounds"},
       schedule::one_peer_exponential},
  };
  return all;
}

constexpr std::pair<std::string_view, std::string_view> aliases[] = {
    {"torus", "torus2d"}, {"grid", "grid2d"},         {"line", "grid1d"},
    {"path", "grid1d"},   {"all_to_all", "complete"}, {"static_exponential", "exponential"}};

std::string canonical(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '-', '_');
  for (const auto& [alias, meant] : aliases) {
    if (result == alias) return std::string(meant);
  }
  return result;
}

}  // namespace

std::vector<TopologyName> topology_names() {
  std::vector<TopologyName> names;
  for (const Entry& entry : entries()) names.push_back(entry.shown);
  return names;
}

TopologyRule topology_by_name(std::string_view name) {
  const std::string wanted = canonical(name);
  std::vector<std::string_view> known;
  for (const Entry& entry : entries()) {
    if (entry.shown.name == wanted) return entry.make();
    known.push_back(entry.shown.name);
  }
  fail(ErrorKind::topology,
       "topology: there is no \"{}\"; choose from {}, or give a path to a .toml file", name,
       fmt::join(known, ", "));
}

TopologyRule topology_from(const std::string& name_or_path) {
  std::error_code ignored;
  const bool is_path = name_or_path.ends_with(".toml") || name_or_path.ends_with(".mtx") ||
                       std::filesystem::is_regular_file(name_or_path, ignored);
  return is_path ? load_topology(name_or_path) : topology_by_name(name_or_path);
}

}  // namespace fast
