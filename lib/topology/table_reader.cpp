#include "topology/table_reader.hpp"

#include <fast/topology/stencil.hpp>

namespace fast {

namespace {

class Grid {
 public:
  Grid(const TableReader& reader, bool periodic, int dimensions)
      : reader_(reader), grid_{{}, periodic}, dimensions_(dimensions) {}

  TopologyRule rule(const std::string& file_name) {
    if (reader_.has("dimensions")) {
      agree("dimensions", reader_.integer(reader_.at("dimensions"), "dimensions", 1, 3));
    }
    grid_.sides = sides_in_table(reader_);
    if (!grid_.sides.empty()) agree("sides", static_cast<int>(grid_.sides.size()));
    const Offsets offsets = this->offsets();
    const std::vector<double> weights = this->weights();
    const bool usual = !reader_.has("offsets") && !reader_.has("neighborhood");
    const std::string fallback = usual ? (grid_.periodic ? "torus" : "grid") : file_name;
    try {
      return stencil::on_grid(reader_.string_or("name", fallback), grid_, offsets, weights);
    } catch (const Error& error) {
      const char* key = reader_.has("offsets") ? "offsets" : "sides";
      if (!reader_.has(key)) key = "stencil";
      reader_.fail_at(reader_.at(key), key, "does not make a grid: {}", error.what());
    }
  }

 private:
  void agree(std::string_view key, int found) {
    if (dimensions_ != 0 && found != dimensions_) {
      reader_.fail_at(reader_.at(key), key, "means {} dimensions, {} are said elsewhere", found,
                      dimensions_);
    }
    dimensions_ = found;
  }

  Offsets offsets() {
    if (!reader_.has("offsets")) return neighborhood(dimensions_ == 0 ? 2 : dimensions_);
    const toml::node& node = reader_.at("offsets");
    if (reader_.has("neighborhood")) {
      reader_.fail_at(node, "offsets", "stands beside \"neighborhood\"; leave one of them out");
    }
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) {
      reader_.fail_at(node, "offsets", "needs a list of offsets, such as [[0, 1], [0, -1]]");
    }
    Offsets offsets;
    for (const toml::node& entry : *list) {
      offsets.push_back(reader_.integers(entry, "offsets", -max_workers));
      if (offsets.back().empty()) reader_.fail_at(entry, "offsets", "has an empty offset");
      agree("offsets", static_cast<int>(offsets.back().size()));
    }
    if (dimensions_ > 3 && grid_.sides.empty()) {
      reader_.fail_at(node, "offsets", "has {} dimensions, for more than 3 give key \"sides\"",
                      dimensions_);
    }
    return offsets;
  }

  // One an offset; a string is a rule's name and no concern of the grid's.
  std::vector<double> weights() const {
    if (!reader_.has("weights") || reader_.at("weights").is_string()) return {};
    const toml::node& node = reader_.at("weights");
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty() || !reader_.has("offsets")) {
      reader_.fail_at(
          node, "weights",
          "needs a rule's name, or beside \"offsets\" a list with one weight an offset");
    }
    std::vector<double> weights;
    for (const toml::node& entry : *list) {
      weights.push_back(reader_.number(entry, "weights", 0, 1));
    }
    return weights;
  }

  Offsets neighborhood(int dimensions) const {
    const std::string name = reader_.string_or("neighborhood", "von_neumann");
    if (name == "von_neumann") return von_neumann(dimensions);
    const toml::node& node = reader_.at("neighborhood");
    if (name != "moore") {
      reader_.fail_at(node, "neighborhood", "holds \"{}\"; choose von_neumann or moore", name);
    }
    if (dimensions > 3) {
      reader_.fail_at(node, "neighborhood", "moore has 1 to 3 dimensions, not {}", dimensions);
    }
    return moore(dimensions);
  }

  const TableReader& reader_;
  GridShape grid_;
  int dimensions_;
};

}  // namespace

std::vector<int> sides_in_table(const TableReader& reader) {
  if (!reader.has("sides")) return {};
  const toml::node& node = reader.at("sides");
  std::vector<int> sides = reader.integers(node, "sides", 1);
  if (sides.empty()) reader.fail_at(node, "sides", "is empty; give a number or leave it out");
  return sides;
}

TopologyRule grid_in_table(const TableReader& reader, bool periodic, int dimensions,
                           const std::string& file_name) {
  reader.allow_keys({"stencil", "dimensions", "sides", "neighborhood", "offsets"});
  return Grid(reader, periodic, dimensions).rule(file_name);
}

}  // namespace fast
