#include "topology/reader.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/message.hpp>

#include "core/closest.hpp"

namespace fast {

void TableReader::allow_keys(std::initializer_list<std::string_view> more) const {
  std::vector<std::string_view> allowed = common_;
  allowed.insert(allowed.end(), more);
  for (const auto& [key, node] : table_) {
    if (std::find(allowed.begin(), allowed.end(), key.str()) == allowed.end()) {
      fail(ErrorKind::topology,
           "Topology::load: {}:{}: key \"{}\" is not known here; choose from {}{}", path_,
           key.source().begin.line, key.str(), fmt::join(allowed, ", "),
           did_you_mean(key.str(), allowed));
    }
  }
}

int TableReader::integer(const toml::node& node, std::string_view key, int low, int high) const {
  const std::optional<std::int64_t> value = node.value_exact<std::int64_t>();
  if (!value) fail_at(node, key, "holds a {}, an integer is required", toml_type(node));
  if (*value < low || *value > high) {
    fail_at(node, key, "holds {}, {} to {} is required", *value, low, high);
  }
  return static_cast<int>(*value);
}

int TableReader::integer_or(std::string_view key, int low, int high, int otherwise) const {
  return has(key) ? integer(at(key), key, low, high) : otherwise;
}

std::vector<int> TableReader::integers(const toml::node& node, std::string_view key,
                                       int low) const {
  if (!node.is_array()) {
    fail_at(node, key, "holds a {}, a list of integers is required", toml_type(node));
  }
  std::vector<int> values;
  for (const toml::node& entry : *node.as_array()) {
    values.push_back(integer(entry, key, low, max_workers));
  }
  return values;
}

double TableReader::number(const toml::node& node, std::string_view key, double low,
                           double high) const {
  const std::optional<double> value = node.value<double>();
  if (!value || !node.is_number()) {
    fail_at(node, key, "holds a {}, a number is required", toml_type(node));
  }
  if (!(*value >= low && *value <= high)) {
    fail_at(node, key, "holds {}, {} to {} is required", *value, low, high);
  }
  return *value;
}

std::string TableReader::string_or(std::string_view key, std::string otherwise) const {
  if (!has(key)) return printable(otherwise);
  if (!at(key).is_string()) {
    fail_at(at(key), key, "holds a {}, a string is required", toml_type(at(key)));
  }
  return printable(at(key).as_string()->get());
}

bool TableReader::flag(std::string_view key) const {
  if (!has(key)) return false;
  if (!at(key).is_boolean()) {
    fail_at(at(key), key, "holds a {}, true or false is required", toml_type(at(key)));
  }
  return at(key).as_boolean()->get();
}

}  // namespace fast
