#include <fast/topology/load.hpp>

#include <algorithm>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <filesystem>
#include <utility>

#include "core/text.hpp"
#include "topology/edge_list.hpp"
#include "topology/table_reader.hpp"

namespace fast {

// Rules from the tables of a topology file.

/// The rule of a file's table, or of one of its rounds; docs/reference/topologies.md has the keys.
/// `table` needs to live only until the call returns. Throws Error(topology).
TopologyRule rule_in_table(const std::string& path, const toml::table& table);

namespace {

constexpr int max_seed = std::numeric_limits<int>::max();

class RuleReader {
 public:
  RuleReader(const std::string& path, const toml::table& table)
      : reader_(path, table, {"name", "workers", "weights", "lazy"}), table_(table) {}

  TopologyRule rule() const {
    int kinds = 0;
    for (const char* key : {"stencil", "schedule", "edges", "round"}) {
      kinds += reader_.has(key) ? 1 : 0;
    }
    require(kinds == 1, ErrorKind::topology,
            "Topology::load: {}:{}: {} of the keys stencil, schedule, edges and round, exactly one "
            "is required",
            reader_.path(), std::max(1, reader_.line()), kinds);
    const Weights wanted = weights();
    if (reader_.has("edges")) return with_weights(edges(), wanted);
    TopologyRule inner = reader_.has("stencil")    ? stencil()
                         : reader_.has("schedule") ? schedule()
                                                   : rounds();
    return with_weights(located(std::move(inner)), wanted);
  }

 private:
  struct Weights {
    WeightRule rule = WeightRule::automatic;
    bool lazy = false;
  };

  Weights weights() const {
    Weights wanted{WeightRule::automatic, reader_.flag("lazy")};
    if (!reader_.has("weights")) return wanted;
    const toml::node& node = reader_.at("weights");
    if (node.is_array() && reader_.has("offsets")) return wanted;
    try {
      wanted.rule = weight_rule_by_name(reader_.string_or("weights", ""));
    } catch (const Error& error) {
      if (!node.is_string()) throw;
      reader_.fail_at(node, "weights", "holds an unknown name: {}", error.what());
    }
    return wanted;
  }

  static TopologyRule with_weights(TopologyRule inner, Weights wanted) {
    if (wanted.rule == WeightRule::automatic && !wanted.lazy) return inner;
    return {inner.name(),
            [=](int workers) { return inner.make(workers).with_weights(wanted.rule, wanted.lazy); },
            inner.natural_workers()};
  }

  std::string name_of_file() const {
    return reader_.string_or("name", std::filesystem::path(reader_.path()).stem().string());
  }

  std::uint64_t seed() const {
    return static_cast<std::uint64_t>(reader_.integer_or("seed", 0, max_seed, 1));
  }

  TopologyRule named(std::string_view key) const {
    reader_.allow_keys({key});
    const std::string name = reader_.string_or(key, "");
    try {
      if (is_schedule_name(name) == (key == "schedule")) return topology_by_name(name);
    } catch (const Error& error) {
      reader_.fail_at(reader_.at(key), key, "holds an unknown name: {}", error.what());
    }
    const std::string_view right = key == "stencil" ? "schedule" : "stencil";
    reader_.fail_at(reader_.at(key), key, "holds \"{}\", which is a {}; write {} = \"{}\"", name,
                    right, right, name);
  }

  TopologyRule stencil() const {
    const std::string kind = with_underscores(reader_.string_or("stencil", ""));
    const bool torus = kind.starts_with("torus"), grid = kind.starts_with("grid");
    if (torus || grid) {
      const std::string rest = kind.substr(torus ? 5 : 4);
      if (rest.empty() || rest == "1d" || rest == "2d" || rest == "3d") {
        return grid_in_table(reader_, torus, rest.empty() ? 0 : rest[0] - '0', name_of_file());
      }
    }
    if (kind == "ring") {
      reader_.allow_keys({"stencil", "directed"});
      return stencil::ring(reader_.flag("directed"));
    }
    return graph(kind);
  }

  TopologyRule graph(const std::string& kind) const {
    const auto integer = [&](std::string_view key, int low, int high, int otherwise) {
      return reader_.integer_or(key, low, high, otherwise);
    };
    if (kind == "star") {
      reader_.allow_keys({"stencil", "center"});
      return graph::star(integer("center", 0, max_workers, 0));
    }
    if (kind == "tree") {
      reader_.allow_keys({"stencil", "branching"});
      return graph::tree(integer("branching", 1, max_listed_workers, 2));
    }
    if (kind == "random_regular") {
      reader_.allow_keys({"stencil", "degree", "seed"});
      return graph::random_regular(integer("degree", 1, 4096, 4), seed());
    }
    if (kind == "erdos_renyi") {
      reader_.allow_keys({"stencil", "probability", "seed"});
      std::optional<double> probability;
      if (reader_.has("probability")) probability = fraction("probability", 1e-9, 0);
      return graph::erdos_renyi(probability, seed());
    }
    if (kind == "small_world") {
      reader_.allow_keys({"stencil", "neighbors", "rewiring", "seed"});
      const int neighbors = integer("neighbors", 2, 4096, 4);
      if (neighbors % 2 != 0) {
        reader_.fail_at(reader_.at("neighbors"), "neighbors",
                        "holds {}, an even number is required", neighbors);
      }
      return graph::small_world(neighbors, fraction("rewiring", 0, 0.1), seed());
    }
    if (kind == "hierarchical") return hierarchical();
    return named("stencil");
  }

  double fraction(std::string_view key, double low, double otherwise) const {
    return reader_.has(key) ? reader_.number(reader_.at(key), key, low, 1) : otherwise;
  }

  TopologyRule hierarchical() const {
    reader_.allow_keys({"stencil", "among", "workers_per_host", "links"});
    const std::string among = reader_.string_or("among", "ring");
    const int per_host = reader_.integer_or("workers_per_host", 1, max_workers, 4);
    const int links = reader_.integer_or("links", 1, max_workers, 1);
    try {
      if (!is_schedule_name(among)) {
        return graph::hierarchical(topology_by_name(among), per_host, links);
      }
    } catch (const Error& error) {
      reader_.fail_at(reader_.at("among"), "among", "holds an unknown name: {}", error.what());
    }
    reader_.fail_at(reader_.at("among"), "among",
                    "holds \"{}\", which is a schedule; choose a stencil", among);
  }

  TopologyRule schedule() const {
    const std::string kind = with_underscores(reader_.string_or("schedule", ""));
    if (kind == "base") {
      reader_.allow_keys({"schedule", "neighbors"});
      return schedule::base(reader_.integer_or("neighbors", 1, 63, 1));
    }
    if (kind == "hierarchical_one_peer") {
      reader_.allow_keys({"schedule", "workers_per_host", "links"});
      return schedule::hierarchical_one_peer(
          reader_.integer_or("workers_per_host", 1, max_workers, 0),
          reader_.integer_or("links", 1, max_workers, 1));
    }
    if (kind == "sharded_one_peer") {
      reader_.allow_keys({"schedule", "workers_per_host"});
      return schedule::sharded_one_peer(reader_.integer_or("workers_per_host", 1, max_workers, 0));
    }
    if (kind == "sites") {
      reader_.allow_keys({"schedule", "every", "workers_per_site", "links"});
      return schedule::sites(reader_.integer_or("every", 3, max_workers, 50),
                             reader_.integer_or("workers_per_site", 1, max_workers, 0),
                             reader_.integer_or("links", 1, max_workers, 1));
    }
    if (kind == "random_matchings" || kind == "equidyn") {
      reader_.allow_keys({"schedule", "seed"});
      return kind == "equidyn" ? schedule::equidyn(seed()) : schedule::random_matchings(seed());
    }
    if (kind == "alternating_pairs_torus") {
      reader_.allow_keys({"schedule", "sides", "dimensions"});
      return schedule::alternating_pairs_torus(sides_in_table(reader_),
                                               reader_.integer_or("dimensions", 1, 3, 2));
    }
    return named("schedule");
  }

  TopologyRule rounds() const {
    reader_.allow_keys({"round"});
    const toml::node& node = reader_.at("round");
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty() || !list->is_homogeneous<toml::table>()) {
      reader_.fail_at(node, "round", "needs a list of tables, each under a line [[round]]");
    }
    std::vector<TopologyRule> rules;
    std::vector<int> lines;
    int natural = 0;
    for (const toml::node& entry : *list) {
      const toml::table& table = *entry.as_table();
      for (const char* key : {"schedule", "round"}) {
        if (table.contains(key)) {
          reader_.fail_at(entry, key,
                          "stands in a round, which needs key \"stencil\" or \"edges\"");
        }
      }
      rules.push_back(rule_in_table(reader_.path(), table));
      lines.push_back(TableReader::line_of(entry));
      natural = std::max(natural, rules.back().natural_workers());
    }
    const std::string name = name_of_file(), path = reader_.path();
    return {name,
            [=](int workers) {
              std::vector<Topology> made;
              for (std::size_t k = 0; k < rules.size(); ++k) {
                try {
                  made.push_back(rules[k].make(workers).at(0));
                } catch (const Error& error) {
                  fail(error.kind(), "line {}, round {} of key \"round\": {}", lines[k], k + 1,
                       error.what());
                }
              }
              return Schedule(name, std::move(made));
            },
            natural};
  }

  TopologyRule edges() const {
    reader_.allow_keys({"edges", "directed"});
    const toml::node& node = reader_.at("edges");
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) {
      reader_.fail_at(node, "edges", "needs a list of edges, such as [[0, 1], [1, 2]]");
    }
    EdgeList result{reader_.path(),
                    name_of_file(),
                    TableReader::line_of(node),
                    reader_.integer_or("workers", 1, max_listed_workers, 0),
                    reader_.flag("directed"),
                    {},
                    "key \"edges\""};
    for (const toml::node& entry : *list) result.edges.push_back(edge(entry));
    return rule_of(std::move(result));
  }

  Edge edge(const toml::node& node) const {
    const toml::array* parts = node.as_array();
    if (parts == nullptr || parts->size() < 2 || parts->size() > 3) {
      reader_.fail_at(node, "edges", "holds an edge that is not [from, to] or [from, to, weight]");
    }
    Edge edge{reader_.integer((*parts)[0], "edges", 0, max_listed_workers - 1),
              reader_.integer((*parts)[1], "edges", 0, max_listed_workers - 1),
              {},
              TableReader::line_of(node)};
    if (parts->size() == 3) {
      edge.weight = (*parts)[2].value<double>();
      if (!edge.weight) {
        reader_.fail_at((*parts)[2], "edges", "holds a {} as weight, a number is required",
                        toml_type((*parts)[2]));
      }
    }
    return edge;
  }

  TopologyRule located(TopologyRule inner) const {
    const std::string path = reader_.path(), name = reader_.string_or("name", "");
    const int fixed = reader_.integer_or("workers", 1, max_workers, 0);
    const int line = fixed != 0 ? TableReader::line_of(reader_.at("workers")) : 0;
    const int key_line = TableReader::line_of(table_.begin()->second);
    TopologyRule rule(
        name.empty() ? inner.name() : name,
        [=](int count) {
          require(fixed == 0 || count == fixed, ErrorKind::topology,
                  "Topology::load: {} is for {} workers, this run has {}; start {} workers or edit "
                  "key \"workers\" (line {}).",
                  path, fixed, count, fixed, line);
          try {
            return inner.make(count);
          } catch (const Error& error) {
            fail(error.kind(), "Topology::load: {}:{}: {}", path, line != 0 ? line : key_line,
                 error.what());
          }
        },
        fixed != 0 ? fixed : inner.natural_workers());
    // What is of one size is made at once, so that the file's mistakes show when it is read.
    if (fixed != 0) rule.make(fixed);
    return rule;
  }

  TableReader reader_;
  const toml::table& table_;
};

}  // namespace

TopologyRule rule_in_table(const std::string& path, const toml::table& table) {
  return RuleReader(path, table).rule();
}

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
