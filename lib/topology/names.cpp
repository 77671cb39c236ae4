#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <filesystem>
#include <optional>

#include "core/registry.hpp"
#include "core/text.hpp"

namespace fast {
namespace {

struct Entry : TopologyName {
  TopologyRule (*make)();                                      ///< null: see on_sides
  TopologyRule (*on_sides)(std::vector<int> sides) = nullptr;  ///< of a grid; empty: as N allows
};

constexpr Entry entries[] = {
    {{"ring", "two neighbors, left and right"}, [] { return stencil::ring(); }},
    {{"directed_ring", "reads its left neighbor only"}, [] { return stencil::ring(true); }},
    {{"torus2d", "periodic grid, as square as N allows: 4 neighbors"}, nullptr, stencil::torus2d},
    {{"torus3d", "periodic grid in three dimensions: 6 neighbors"}, nullptr, stencil::torus3d},
    {{"grid1d", "open line: 2 neighbors, 1 at the ends"}, [] { return stencil::grid1d(); }},
    {{"grid2d", "open grid, as square as N allows: up to 4 neighbors"}, nullptr, stencil::grid2d},
    {{"grid3d", "open grid in three dimensions: up to 6 neighbors"}, nullptr, stencil::grid3d},
    {{"moore2d", "torus with its diagonals: 8 neighbors"}, nullptr, stencil::moore2d},
    {{"moore3d", "the same in three dimensions: 26 neighbors"}, nullptr, stencil::moore3d},
    {{"hypercube", "log2 N neighbors; N a power of two"}, stencil::hypercube},
    {{"complete", "everybody reads everybody"}, stencil::complete},
    {{"exponential", "reads those 1, 2, 4, ... places before it"}, stencil::exponential},
    {{"star", "all read worker 0 and it reads all"}, [] { return graph::star(); }},
    {{"tree", "balanced binary tree"}, [] { return graph::tree(); }},
    {{"random_regular", "4 neighbors each, drawn at random"},
     [] { return graph::random_regular(); }},
    {{"erdos_renyi", "each pair with probability 2 ln N / N"}, [] { return graph::erdos_renyi(); }},
    {{"small_world", "ring of 4 neighbors, a tenth of the edges rewired at random"},
     [] { return graph::small_world(); }},
    {{"hierarchical", "complete within hosts of 4, a ring among their first workers"},
     [] { return graph::hierarchical(stencil::ring(), 4); }},
    {{"one_peer_exponential",
      "reads the one 1, 2, 4, ... before it, in turn: exact after log2 N "
      "rounds for N a power of two",
      true},
     schedule::one_peer_exponential},
    {{"base2", "1 neighbor a round, exact after a few rounds for any N", true},
     [] { return schedule::base(1); }},
    {{"base3", "the same with up to 2 neighbors", true}, [] { return schedule::base(2); }},
    {{"base4", "the same with up to 3 neighbors", true}, [] { return schedule::base(3); }},
    {{"hierarchical_one_peer",
      "within hosts, and one payload in and out of each host in turn: exact after "
      "1 + 2 log2 HOSTS rounds for a power of two",
      true},
     [] { return schedule::hierarchical_one_peer(); }},
    {{"sharded_one_peer",
      "hierarchical_one_peer in which each worker of a host sends its share of the payload", true},
     [] { return schedule::sharded_one_peer(); }},
    {{"sites",
      "within hosts, and one payload in and out of each host in every 50th round; sites:H: in "
      "every H-th round",
      true},
     [] { return schedule::sites(); }},
    {{"alternating_pairs", "pairs on a ring, left and right in turn", true},
     schedule::alternating_pairs},
    {{"alternating_pairs_torus", "pairs on a torus, along each axis in turn", true},
     [] { return schedule::alternating_pairs_torus(); }},
    {{"exponential_ring", "one_peer_exponential and the ring in turn", true},
     schedule::exponential_ring},
    {{"random_matchings", "pairs drawn again every round", true},
     [] { return schedule::random_matchings(); }},
    {{"equidyn", "reads the one u before it, u drawn again every round", true},
     [] { return schedule::equidyn(); }},
};

constexpr Alias aliases[] = {{"torus", "torus2d"},       {"grid", "grid2d"},
                             {"line", "grid1d"},         {"path", "grid1d"},
                             {"moore", "moore2d"},       {"base", "base2"},
                             {"all_to_all", "complete"}, {"static_exponential", "exponential"}};
constexpr Registry registry{
    entries, "topology: there is no \"{}\"; choose from {}, or give a path to a .toml or .mtx file",
    aliases, ErrorKind::topology};

const Entry& entry_named(std::string_view name) {
  const Entry* found = registry.find(with_underscores(name));
  if (found == nullptr) registry.fail(name);
  return *found;
}

/// H of "sites:H", and the default of "sites"; nothing: another name.
std::optional<std::int64_t> every_of_sites(std::string_view name) {
  constexpr std::string_view sites = "sites";
  constexpr std::int64_t otherwise = 50;
  if (name == sites) return otherwise;
  if (!name.starts_with(sites) || name.substr(sites.size(), 1) != ":") return {};
  const std::string_view digits = name.substr(sites.size() + 1);
  std::int64_t every = 0;
  require(reads(digits, every), ErrorKind::topology,
          "topology \"{}\": \"{}\" is not a number of rounds; write sites:50", name, digits);
  return every;
}

/// The entry of "torus2d" or of "torus2d:4x8", and what is after the colon.
std::pair<const Entry&, std::string_view> entry_and_sides(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return {entry_named(name), {}};
  const Entry& entry = entry_named(name.substr(0, colon));
  require(entry.on_sides != nullptr, ErrorKind::topology,
          "topology \"{}\": {} has no sides; leave out \"{}\"", name, entry.name,
          name.substr(colon));
  return {entry, name.substr(colon + 1)};
}

/// {4, 8} of "4x8".
std::vector<int> sides_in(std::string_view text, std::string_view name) {
  std::vector<int> sides;
  for (const std::string_view digits : split_text(text, 'x')) {
    require(reads(digits, sides.emplace_back()), ErrorKind::topology,
            "topology \"{}\": \"{}\" are no sides; write torus2d:4x8 or grid3d:2x3x4", name, text);
  }
  return sides;
}

}  // namespace

std::vector<TopologyName> topology_names() { return {std::begin(entries), std::end(entries)}; }

bool is_schedule_name(std::string_view name) {
  return every_of_sites(name) || entry_and_sides(name).first.is_schedule;
}

TopologyRule topology_by_name(std::string_view name) {
  if (const auto every = every_of_sites(name)) return schedule::sites(*every);
  const auto [entry, sides] = entry_and_sides(name);
  if (entry.on_sides == nullptr) return entry.make();
  const bool is_given = name.find(':') != std::string_view::npos;
  return entry.on_sides(is_given ? sides_in(sides, name) : std::vector<int>{});
}

TopologyRule topology_from(const std::string& name_or_path) {
  std::error_code ignored;
  const bool is_path = name_or_path.ends_with(".toml") || name_or_path.ends_with(".mtx") ||
                       name_or_path.find('/') != std::string::npos ||
                       std::filesystem::is_regular_file(name_or_path, ignored);
  return is_path ? load_topology(name_or_path) : topology_by_name(name_or_path);
}

TopologyRule topology_on_hosts(const std::string& name_or_path,
                               const std::vector<int>& host_of_rank) {
  const bool several =
      std::ranges::adjacent_find(host_of_rank, std::not_equal_to<>()) != host_of_rank.end();
  const std::string name = with_underscores(name_or_path);
  if (several && name == "hierarchical") return graph::hierarchical(stencil::ring(), host_of_rank);
  if (several && name == "hierarchical_one_peer") {
    return schedule::hierarchical_one_peer(host_of_rank);
  }
  if (several && name == "sharded_one_peer") return schedule::sharded_one_peer(host_of_rank);
  if (const auto every = every_of_sites(name); several && every) {
    return schedule::sites(*every, host_of_rank);
  }
  return topology_from(name_or_path);
}

}  // namespace fast
