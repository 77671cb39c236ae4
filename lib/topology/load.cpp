#include <topology/edge_list.hpp>
#include <topology/toml.hpp>

#include <fmt/ranges.h>
#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <filesystem>
#include <limits>
#include <utility>

namespace fast {
namespace {

constexpr int max_workers = std::numeric_limits<int>::max();
// Graphs of edges are held in memory, which a typo must not fill.
constexpr int max_listed_workers = 1 << 20;

class File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {
    std::error_code error;
    require(std::filesystem::is_regular_file(path_, error), ErrorKind::data,
            "Topology::load: there is no file {}; give a path to a .toml file, or a name", path_);
    require(path_.ends_with(".toml"), ErrorKind::data,
            "Topology::load: {} does not end in .toml, the one format that is read", path_);
    toml::parse_result parsed = toml::parse_file(path_);
    if (!parsed) {
      const toml::parse_error& found = parsed.error();
      const auto kind = found.source().begin ? ErrorKind::topology : ErrorKind::data;
      fail(kind, "Topology::load: {}:{}:{}: {}", path_, found.source().begin.line,
           found.source().begin.column, found.description());
    }
    table_ = std::move(parsed).table();
  }

  TopologyRule rule() const {
    int kinds = 0;
    for (const char* key : {"stencil", "schedule", "edges"}) kinds += table_.contains(key) ? 1 : 0;
    require(kinds == 1, ErrorKind::topology,
            "Topology::load: {}: {} of the keys stencil, schedule and edges, exactly one is "
            "required",
            path_, kinds);
    if (table_.contains("edges")) return edges();
    TopologyRule inner = table_.contains("schedule") ? named("schedule") : stencil();
    return located(std::move(inner));
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_at(const toml::node& node, std::string_view key,
                            fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::topology, "Topology::load: {}:{}: key \"{}\" {}", path_,
         node.source().begin.line, key, fmt::format(format, std::forward<Args>(args)...));
  }

  void allow_keys(std::initializer_list<std::string_view> more) const {
    std::vector<std::string_view> allowed = {"name", "workers"};
    allowed.insert(allowed.end(), more);
    for (const auto& [key, node] : table_) {
      if (std::find(allowed.begin(), allowed.end(), key.str()) == allowed.end()) {
        fail(ErrorKind::topology,
             "Topology::load: {}:{}: key \"{}\" is not known here; choose from {}", path_,
             key.source().begin.line, key.str(), fmt::join(allowed, ", "));
      }
    }
  }

  int integer(const toml::node& node, std::string_view key, int low, int high) const {
    const std::optional<std::int64_t> value = node.value_exact<std::int64_t>();
    if (!value) fail_at(node, key, "holds a {}, an integer is required", type_of(node));
    if (*value < low || *value > high) {
      fail_at(node, key, "holds {}, {} to {} is required", *value, low, high);
    }
    return static_cast<int>(*value);
  }

  std::vector<int> integers(const toml::node& node, std::string_view key, int low) const {
    if (!node.is_array()) {
      fail_at(node, key, "holds a {}, a list of integers is required", type_of(node));
    }
    std::vector<int> values;
    for (const toml::node& entry : *node.as_array()) {
      values.push_back(integer(entry, key, low, max_workers));
    }
    return values;
  }

  std::string string_or(std::string_view key, std::string otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_string()) fail_at(*node, key, "holds a {}, a string is required", type_of(*node));
    return node->as_string()->get();
  }

  bool flag(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean()) {
      fail_at(*node, key, "holds a {}, true or false is required", type_of(*node));
    }
    return node->as_boolean()->get();
  }

  static std::string type_of(const toml::node& node) {
    switch (node.type()) {
      case toml::node_type::table:
        return "table";
      case toml::node_type::array:
        return "list";
      case toml::node_type::string:
        return "string";
      case toml::node_type::integer:
        return "whole number";
      case toml::node_type::floating_point:
        return "fraction";
      case toml::node_type::boolean:
        return "truth value";
      default:
        return "date or time";
    }
  }

  std::string name_of_file() const {
    return string_or("name", std::filesystem::path(path_).stem().string());
  }

  // 0 when the file does not say.
  int workers(int most) const {
    const toml::node* node = table_.get("workers");
    return node == nullptr ? 0 : integer(*node, "workers", 1, most);
  }

  TopologyRule named(std::string_view key) const {
    allow_keys({key});
    const std::string name = string_or(key, "");
    try {
      TopologyRule rule = topology_by_name(name);
      const bool is_stencil = rule.make(4).is_static();  // 4 workers fit every name
      if (is_stencil == (key == "stencil")) return rule;
    } catch (const Error& error) {
      fail_at(*table_.get(key), key, "holds an unknown name: {}", error.what());
    }
    fail_at(*table_.get(key), key, "holds \"{}\", which is a {}; write {} = \"{}\"", name,
            key == "stencil" ? "schedule" : "stencil", key == "stencil" ? "schedule" : "stencil",
            name);
  }

  TopologyRule stencil() const {
    const std::string kind = string_or("stencil", "");
    const bool torus = kind.starts_with("torus"), grid = kind.starts_with("grid");
    if (torus || grid) {
      const std::string rest = kind.substr(torus ? 5 : 4);
      if (rest.empty() || rest == "1d" || rest == "2d" || rest == "3d") {
        return on_grid(torus, rest.empty() ? 0 : rest[0] - '0');
      }
    }
    if (kind == "ring") {
      allow_keys({"stencil", "directed"});
      return stencil::ring(flag("directed"));
    }
    return named("stencil");
  }

  TopologyRule on_grid(bool periodic, int dimensions) const {
    allow_keys({"stencil", "dimensions", "sides", "neighborhood", "offsets"});
    GridShape grid{{}, periodic};
    Offsets offsets;
    const auto agree = [&](std::string_view key, int found) {
      if (dimensions != 0 && found != dimensions) {
        fail_at(*table_.get(key), key, "means {} dimensions, {} are said elsewhere", found,
                dimensions);
      }
      dimensions = found;
    };
    if (const toml::node* node = table_.get("dimensions")) {
      agree("dimensions", integer(*node, "dimensions", 1, 3));
    }
    if (const toml::node* node = table_.get("sides")) {
      grid.sides = integers(*node, "sides", 1);
      if (grid.sides.empty()) fail_at(*node, "sides", "is empty; give a number or leave it out");
      agree("sides", static_cast<int>(grid.sides.size()));
    }
    if (const toml::node* node = table_.get("offsets")) {
      offsets = offsets_in(*node);
      for (const std::vector<int>& offset : offsets) {
        agree("offsets", static_cast<int>(offset.size()));
      }
    } else {
      offsets = neighborhood(dimensions == 0 ? 2 : dimensions);
    }
    const bool usual = !table_.contains("offsets") && !table_.contains("neighborhood");
    const std::string fallback = usual ? (periodic ? "torus" : "grid") : name_of_file();
    try {
      return stencil::on_grid(string_or("name", fallback), std::move(grid), std::move(offsets));
    } catch (const Error& error) {
      fail(error.kind(), "Topology::load: {}: {}", path_, error.what());
    }
  }

  Offsets offsets_in(const toml::node& node) const {
    if (table_.contains("neighborhood")) {
      fail_at(node, "offsets", "stands beside \"neighborhood\"; leave one of them out");
    }
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) {
      fail_at(node, "offsets", "needs a list of offsets, such as [[0, 1], [0, -1]]");
    }
    Offsets offsets;
    for (const toml::node& entry : *list) {
      offsets.push_back(integers(entry, "offsets", -max_workers));
      if (offsets.back().empty()) fail_at(entry, "offsets", "has an empty offset");
    }
    return offsets;
  }

  Offsets neighborhood(int dimensions) const {
    const std::string name = string_or("neighborhood", "von_neumann");
    if (name == "von_neumann") return von_neumann(dimensions);
    if (name != "moore") {
      fail_at(*table_.get("neighborhood"), "neighborhood",
              "holds \"{}\"; choose von_neumann or moore", name);
    }
    if (dimensions > 3) {
      fail_at(*table_.get("neighborhood"), "neighborhood", "moore has 1 to 3 dimensions, not {}",
              dimensions);
    }
    return moore(dimensions);
  }

  TopologyRule edges() const {
    allow_keys({"edges", "directed"});
    const toml::node& node = *table_.get("edges");
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) {
      fail_at(node, "edges", "needs a list of edges, such as [[0, 1], [1, 2]]");
    }
    EdgeList result{path_,
                    name_of_file(),
                    static_cast<int>(node.source().begin.line),
                    workers(max_listed_workers),
                    flag("directed"),
                    {}};
    for (const toml::node& entry : *list) result.edges.push_back(edge(entry));
    return rule_of(std::move(result));
  }

  Edge edge(const toml::node& node) const {
    const toml::array* parts = node.as_array();
    if (parts == nullptr || parts->size() < 2 || parts->size() > 3) {
      fail_at(node, "edges", "holds an edge that is not [from, to] or [from, to, weight]");
    }
    Edge edge{integer((*parts)[0], "edges", 0, max_listed_workers - 1),
              integer((*parts)[1], "edges", 0, max_listed_workers - 1),
              {},
              static_cast<int>(node.source().begin.line)};
    if (parts->size() == 3) {
      edge.weight = (*parts)[2].value<double>();
      if (!edge.weight) {
        fail_at((*parts)[2], "edges", "holds a {} as weight, a number is required",
                type_of((*parts)[2]));
      }
    }
    return edge;
  }

  TopologyRule located(TopologyRule inner) const {
    const std::string path = path_, name = string_or("name", "");
    const int fixed = workers(max_workers);
    TopologyRule rule(name.empty() ? inner.name() : name, [=](int count) {
      require(fixed == 0 || count == fixed, ErrorKind::topology,
              "Topology::load: {} is for {} workers, this run has {}; start {} workers or edit key "
              "\"workers\".",
              path, fixed, count, fixed);
      try {
        return inner.make(count);
      } catch (const Error& error) {
        fail(error.kind(), "Topology::load: {}: {}", path, error.what());
      }
    });
    if (fixed != 0) rule.make(fixed);
    return rule;
  }

  std::string path_;
  toml::table table_;
};

}  // namespace

TopologyRule load_topology(const std::string& path) { return File(path).rule(); }

}  // namespace fast
