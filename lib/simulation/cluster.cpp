#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fast/simulation/plan.hpp>
#include <variant>

#include "core/contains.hpp"
#include "core/registry.hpp"
#include "core/toml.hpp"

namespace fast::simulation {
namespace {

constexpr std::string_view cluster_reader = "cluster";
constexpr double most_workers = 1e6;

// A key of the file: its member, and the numbers that are allowed.
struct ClusterKey {
  std::string_view name;
  std::variant<int Cluster::*, double Cluster::*> member;
  double low, high;
  bool required = false;
};

const std::array<ClusterKey, 12> cluster_keys = {{
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

class ClusterFile {
 public:
  ClusterFile(const toml::table& table, std::string path) : table_(table), path_(std::move(path)) {}

  Cluster read() const {
    check_names();
    Cluster cluster;
    for (const ClusterKey& key : cluster_keys) take(key, cluster);
    const double workers = 1.0 * cluster.hosts * cluster.workers_per_host;
    require(workers <= most_workers, ErrorKind::argument,
            "cluster: {}: {} hosts with {} workers each; at most {} workers are planned", path_,
            cluster.hosts, cluster.workers_per_host, most_workers);
    return cluster;
  }

 private:
  void check_names() const {
    std::vector<std::string_view> names;
    for (const ClusterKey& key : cluster_keys) names.push_back(key.name);
    for (const auto& [name, node] : table_) {
      const bool known = contains(names, name.str());
      require(known, ErrorKind::argument, "cluster: {}:{}: there is no key \"{}\"{}", path_,
              node.source().begin.line, name.str(), did_you_mean(name.str(), names));
    }
  }

  void take(const ClusterKey& key, Cluster& cluster) const {
    const toml::node* node = table_.get(key.name);
    require(node != nullptr || !key.required, ErrorKind::argument,
            "cluster: {}: the key \"{}\" is missing", path_, key.name);
    if (node == nullptr) return;
    const bool whole = std::holds_alternative<int Cluster::*>(key.member);
    const std::optional<double> value = node->value<double>();
    const bool fits = value && (node->is_number()) && (!whole || *value == std::floor(*value)) &&
                      *value >= key.low && *value <= key.high;
    require(fits, ErrorKind::argument, "cluster: {}:{}: key \"{}\" is a {} from {} to {}", path_,
            node->source().begin.line, key.name, whole ? "whole number" : "number", key.low,
            key.high);
    if (whole) {
      cluster.*std::get<int Cluster::*>(key.member) = static_cast<int>(*value);
    } else {
      cluster.*std::get<double Cluster::*>(key.member) = *value;
    }
  }

  const toml::table& table_;
  std::string path_;
};

}  // namespace

Cluster parse_cluster(const std::string& text, const std::string& path) {
  return ClusterFile(toml_table(text, {path, ErrorKind::argument, cluster_reader}), path).read();
}

Cluster load_cluster(const std::string& path) {
  return parse_cluster(
      text_of_file(path, cluster_reader, "give a TOML file that describes a cluster"), path);
}

std::string cluster_text(const Cluster& cluster) {
  std::string text;
  for (const ClusterKey& key : cluster_keys) {
    std::visit([&](auto member) { text += fmt::format("{} = {}\n", key.name, cluster.*member); },
               key.member);
  }
  return text;
}

}  // namespace fast::simulation
