#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fast/simulation/plan.hpp>
#include <variant>
#include <vector>

#include "core/contains.hpp"
#include "core/registry.hpp"
#include "core/toml.hpp"

namespace fast::simulation {
namespace {

// What errors begin with.
constexpr std::string_view cluster_reader = "cluster", sites_reader = "sites";
constexpr double most_workers = 1e6;

// A key of a table: its member, and the numbers that are allowed.
template <class T>
struct Key {
  std::string_view name;
  std::variant<int T::*, double T::*> member;
  double low, high;
  bool required = false;
};

const std::vector<Key<Cluster>> cluster_keys = {{
    {"hosts", &Cluster::hosts, 1, most_workers, true},
    {"workers_per_host", &Cluster::workers_per_host, 1, most_workers},
    {"link_bandwidth", &Cluster::link_bandwidth, 1, 1e15, true},
    {"link_latency_s", &Cluster::link_latency_s, 0, 1e3},
    {"link_jitter", &Cluster::link_jitter, 0, 3},
    {"memory_bandwidth", &Cluster::memory_bandwidth, 1, 1e15},
    {"step_s", &Cluster::step_s, 1e-9, 1e6, true},
    {"step_jitter", &Cluster::step_jitter, 0, 3},
    {"payload_bytes", &Cluster::payload_bytes, 4, 1e14, true},
    {"critical_workers", &Cluster::critical_workers, 0, 1e9},
    {"decay", &Cluster::decay, 0.01, 0.9999},
    {"allreduce_overlap", &Cluster::allreduce_overlap, 0, 1},
}};

const std::vector<Key<PlannedSites>> sites_keys = {{
    {"step_s", &PlannedSites::step_s, 1e-9, 1e6, true},
    {"payload_bytes", &PlannedSites::payload_bytes, 4, 1e14, true},
}};

const std::vector<Key<PlannedSite>> site_keys = {{
    {"workers", &PlannedSite::workers, 1, most_workers},
    {"bandwidth", &PlannedSite::bandwidth, 1, 1e15, true},
    {"latency_s", &PlannedSite::latency_s, 0, 1e3, true},
}};

// Numbers of a table.
template <class T>
class Numbers {
 public:
  Numbers(const toml::table& table, const TomlOrigin& origin, const std::vector<Key<T>>& keys)
      : table_(table), path_(origin.path), who_(origin.who), keys_(keys) {}

  // `more`: a key of something else.
  T read(std::string_view more = {}) const {
    check_names(more);
    T result;
    for (const Key<T>& key : keys_) take(key, result);
    return result;
  }

 private:
  void check_names(std::string_view more) const {
    std::vector<std::string_view> names;
    for (const Key<T>& key : keys_) names.push_back(key.name);
    if (!more.empty()) names.push_back(more);
    for (const auto& [name, node] : table_) {
      const bool known = contains(names, name.str());
      require(known, ErrorKind::argument, "{}: {}:{}: there is no key \"{}\"{}", who_, path_,
              node.source().begin.line, name.str(), did_you_mean(name.str(), names));
    }
  }

  void take(const Key<T>& key, T& result) const {
    const toml::node* node = table_.get(key.name);
    require(node != nullptr || !key.required, ErrorKind::argument,
            "{}: {}: the key \"{}\" is missing", who_, place(), key.name);
    if (node == nullptr) return;
    const bool whole = std::holds_alternative<int T::*>(key.member);
    const std::optional<double> value = node->value<double>();
    const bool fits = value && (node->is_number()) && (!whole || *value == std::floor(*value)) &&
                      *value >= key.low && *value <= key.high;
    require(fits, ErrorKind::argument, "{}: {}:{}: key \"{}\" is a {} from {} to {}", who_, path_,
            node->source().begin.line, key.name, whole ? "whole number" : "number", key.low,
            key.high);
    if (whole) {
      result.*std::get<int T::*>(key.member) = static_cast<int>(*value);
    } else {
      result.*std::get<double T::*>(key.member) = *value;
    }
  }

  // Of a table within the file.
  std::string place() const {
    const auto line = table_.source().begin.line;
    return line > 1 ? fmt::format("{}:{}", path_, line) : path_;
  }

  const toml::table& table_;
  std::string path_;
  std::string_view who_;
  const std::vector<Key<T>>& keys_;
};

}  // namespace

Cluster parse_cluster(const std::string& text, const std::string& path) {
  const TomlOrigin origin{path, ErrorKind::argument, cluster_reader};
  const toml::table table = toml_table(text, origin);
  const Cluster cluster = Numbers(table, origin, cluster_keys).read();
  const double workers = 1.0 * cluster.hosts * cluster.workers_per_host;
  require(workers <= most_workers, ErrorKind::argument,
          "cluster: {}: {} hosts with {} workers each; at most {} workers are planned", path,
          cluster.hosts, cluster.workers_per_host, most_workers);
  return cluster;
}

PlannedSites parse_sites(const std::string& text, const std::string& path) {
  const TomlOrigin origin{path, ErrorKind::argument, sites_reader};
  const toml::table table = toml_table(text, origin);
  PlannedSites result = Numbers(table, origin, sites_keys).read("site");
  const toml::array* sites = table["site"].as_array();
  require(sites != nullptr && sites->size() >= 2 && sites->is_homogeneous<toml::table>(),
          ErrorKind::argument,
          "{}: {}: two tables [[site]] or more are required, one for each site", sites_reader,
          path);
  for (const toml::node& site : *sites)
    result.sites.push_back(Numbers(*site.as_table(), origin, site_keys).read());
  return result;
}

PlannedSites load_sites(const std::string& path) {
  return parse_sites(text_of_file(path, sites_reader, "give a TOML file that describes sites"),
                     path);
}

Cluster load_cluster(const std::string& path) {
  return parse_cluster(
      text_of_file(path, cluster_reader, "give a TOML file that describes a cluster"), path);
}

std::string cluster_text(const Cluster& cluster) {
  std::string text;
  for (const Key<Cluster>& key : cluster_keys) {
    std::visit([&](auto member) { text += fmt::format("{} = {}\n", key.name, cluster.*member); },
               key.member);
  }
  return text;
}

}  // namespace fast::simulation
