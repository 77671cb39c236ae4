// Values of a TOML table, with errors that name file, line and key.
#pragma once

#include <fast/topology/topology.hpp>

#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/toml.hpp"

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

  void allow_keys(std::initializer_list<std::string_view> more) const;

  int integer(const toml::node& node, std::string_view key, int low, int high) const;
  int integer_or(std::string_view key, int low, int high, int otherwise) const;
  std::vector<int> integers(const toml::node& node, std::string_view key, int low) const;
  /// Finite, in [low, high].
  double number(const toml::node& node, std::string_view key, double low, double high) const;
  std::string string_or(std::string_view key, std::string otherwise) const;
  bool flag(std::string_view key) const;

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
