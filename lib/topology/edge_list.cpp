#include "topology/edge_list.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <map>
#include <utility>

namespace fast {
namespace {

template <class... Args>
[[noreturn]] void fail_at(const EdgeList& list, std::size_t edge,
                          fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::topology, "Topology::load: {}:{}: edge {} of {} {}", list.path,
       list.edges[edge].line, edge + 1, list.where,
       fmt::format(format, std::forward<Args>(args)...));
}

int highest_worker(const EdgeList& list) {
  int highest = 0;
  for (const Edge& edge : list.edges) highest = std::max({highest, edge.from, edge.to});
  return highest;
}

void check_edges(const EdgeList& list) {
  std::map<std::pair<int, int>, std::size_t> first;
  for (std::size_t k = 0; k < list.edges.size(); ++k) {
    const Edge& edge = list.edges[k];
    if (edge.weight.has_value() != list.edges[0].weight.has_value()) {
      fail_at(list, k, "has {} weight, edge 1 has {}; give all edges one or none",
              edge.weight ? "a" : "no", edge.weight ? "none" : "one");
    }
    if (edge.from == edge.to && !edge.weight) {
      fail_at(list, k,
              "joins worker {} with itself; leave it out, a worker's own value is always "
              "part of its average",
              edge.from);
    }
    std::pair<int, int> ends(edge.from, edge.to);
    if (!list.directed && ends.first > ends.second) std::swap(ends.first, ends.second);
    const auto [at, is_new] = first.emplace(ends, k);
    if (!is_new) {
      fail_at(list, k, "repeats edge {} ({} to {}{}); name it once", at->second + 1, edge.from,
              edge.to, list.directed ? "" : ", and edges go both ways unless directed = true");
    }
  }
}

void check_fits(const EdgeList& list, int workers, const char* whose, const char* mend) {
  for (std::size_t k = 0; k < list.edges.size(); ++k) {
    const int named = std::max(list.edges[k].from, list.edges[k].to);
    require(named < workers, ErrorKind::topology,
            "Topology::load: {} names worker {}, {} {} (0..{}); {} at least {} workers or edit "
            "edge {} (line {}).",
            list.path, named, whose, workers, workers - 1, mend, highest_worker(list) + 1, k + 1,
            list.edges[k].line);
  }
}

Topology topology_of(const EdgeList& list, int workers) {
  const auto n = static_cast<std::size_t>(workers);
  std::vector<std::vector<int>> in(n);
  std::vector<std::vector<double>> weights(n);
  std::vector<std::optional<double>> self(n);
  const auto add = [&](int from, int to, const std::optional<double>& weight) {
    in[to].push_back(from);
    if (weight) weights[to].push_back(*weight);
  };
  for (const Edge& edge : list.edges) {
    if (edge.from == edge.to) {
      self[edge.to] = edge.weight;
      continue;
    }
    add(edge.from, edge.to, edge.weight);
    if (!list.directed) add(edge.to, edge.from, edge.weight);
  }
  if (list.edges.empty() || !list.edges[0].weight) return {list.name, std::move(in)};

  std::vector<double> self_weights;
  if (std::any_of(self.begin(), self.end(), [](const auto& weight) { return weight; })) {
    for (std::size_t i = 0; i < n; ++i) {
      double rest = 1;
      for (const double weight : weights[i]) rest -= weight;
      self_weights.push_back(self[i].value_or(std::max(0.0, rest)));
    }
  }
  return {list.name, std::move(in), std::move(weights), std::move(self_weights)};
}

Topology located(const EdgeList& list, int workers) try {
  return topology_of(list, workers);
} catch (const Error& error) {
  fail(error.kind(), "Topology::load: {}:{}: {}: {}", list.path, list.key_line, list.where,
       error.what());
}

}  // namespace

TopologyRule rule_of(EdgeList list) {
  check_edges(list);
  if (list.workers != 0) check_fits(list, list.workers, "key \"workers\" says", "say");
  const Topology smallest =
      located(list, list.workers != 0 ? list.workers : highest_worker(list) + 1);
  const std::string name = list.name;
  const int natural = smallest.workers();
  return {name,
          [list = std::move(list), smallest](int workers) {
            require(list.workers == 0 || workers == list.workers, ErrorKind::topology,
                    "Topology::load: {} is for {} workers, this run has {}; start {} workers or "
                    "edit key \"workers\".",
                    list.path, list.workers, workers, list.workers);
            check_fits(list, workers, "this run has", "start");
            return Schedule(workers == smallest.workers() ? smallest : located(list, workers));
          },
          natural};
}

}  // namespace fast
