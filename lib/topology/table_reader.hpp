// Values of a TOML table, with errors that name file, line and key.
#pragma once

#include <fast/topology/topology.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/toml.hpp"

#include <fmt/ranges.h>

namespace fast {

inline constexpr int max_workers = std::numeric_limits<int>::max();

class TableReader {
 public:
  /// `table` must outlive the reader. `common` are keys allowed beside those of allow_keys.
  TableReader(std::string path, const toml::table& table,
              std::initializer_list<std::string_view> common)
      : path_(std::move(path)), table_(table), common_(common) {}

  const std::string& path() const { return path_; }
  bool has(std::string_view key) const { return table_.contains(key); }
  const toml::node& at(std::string_view key) const { return *table_.get(key); }
  int line() const { return static_cast<int>(table_.source().begin.line); }
  static int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

  template <class... Args>
  [[noreturn]] void fail_at(const toml::node& node, std::string_view key,
                            fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::topology, "Topology::load: {}:{}: key \"{}\" {}", path_, line_of(node), key,
         fmt::format(format, std::forward<Args>(args)...));
  }

  void allow_keys(std::initializer_list<std::string_view> more) const {
    std::vector<std::string_view> allowed = common_;
    allowed.insert(allowed.end(), more);
    for (const auto& [key, node] : table_) {
      if (!contains(allowed, key.str())) {
        fail(ErrorKind::topology,
             "Topology::load: {}:{}: key \"{}\" is not known here; choose from {}{}", path_,
             key.source().begin.line, key.str(), fmt::join(allowed, ", "),
             did_you_mean(key.str(), allowed));
      }
    }
  }

  int integer(const toml::node& node, std::string_view key, int low, int high) const {
    const std::optional<std::int64_t> value = node.value_exact<std::int64_t>();
    if (!value) fail_at(node, key, "holds a {}, an integer is required", toml_type(node));
    if (*value < low || *value > high) {
      fail_at(node, key, "holds {}, {} to {} is required", *value, low, high);
    }
    return static_cast<int>(*value);
  }

  int integer_or(std::string_view key, int low, int high, int otherwise) const {
    return has(key) ? integer(at(key), key, low, high) : otherwise;
  }

  std::vector<int> integers(const toml::node& node, std::string_view key, int low) const {
    if (!node.is_array()) {
      fail_at(node, key, "holds a {}, a list of integers is required", toml_type(node));
    }
    std::vector<int> values;
    for (const toml::node& entry : *node.as_array()) {
      values.push_back(integer(entry, key, low, max_workers));
    }
    return values;
  }

  /// Finite, in [low, high].
  double number(const toml::node& node, std::string_view key, double low, double high) const {
    const std::optional<double> value = node.value<double>();
    if (!value || !node.is_number()) {
      fail_at(node, key, "holds a {}, a number is required", toml_type(node));
    }
    if (!(*value >= low && *value <= high)) {
      fail_at(node, key, "holds {}, {} to {} is required", *value, low, high);
    }
    return *value;
  }

  std::string string_or(std::string_view key, std::string otherwise) const {
    if (!has(key)) return printable(otherwise);
    if (!at(key).is_string()) {
      fail_at(at(key), key, "holds a {}, a string is required", toml_type(at(key)));
    }
    return printable(at(key).as_string()->get());
  }

  bool flag(std::string_view key) const {
    if (!has(key)) return false;
    if (!at(key).is_boolean()) {
      fail_at(at(key), key, "holds a {}, true or false is required", toml_type(at(key)));
    }
    return at(key).as_boolean()->get();
  }

 private:
  std::string path_;
  const toml::table& table_;
  std::vector<std::string_view> common_;
};

// Grids and tori as a topology file describes them.

/// A torus or open grid; `dimensions` are those that the stencil's name says, or 0; `file_name`
/// names a graph of unusual offsets.
TopologyRule grid_in_table(const TableReader& reader, bool periodic, int dimensions,
                           const std::string& file_name);

/// Key "sides" of `reader`, empty when it is not there.
std::vector<int> sides_in_table(const TableReader& reader);

}  // namespace fast
