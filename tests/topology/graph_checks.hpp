// What every graph must hold, whatever made it.
#pragma once

#include <fast/topology/topology.hpp>

#include <algorithm>
#include <vector>

#include "support/catch.hpp"

/// Of a rule that makes one topology.
inline fast::Topology made(const fast::TopologyRule& rule, int workers) {
  return rule.make(workers).at(0);
}

inline bool is_proper_list(const std::vector<int>& list, int self, int workers) {
  const bool ascending = std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) ==
                         list.end();  // sorted, no duplicate
  return ascending && std::none_of(list.begin(), list.end(),
                                   [&](int j) { return j < 0 || j >= workers || j == self; });
}

inline void check_graph(const fast::Topology& topology) {
  INFO(topology.name() << " with " << topology.workers() << " workers");
  const int n = topology.workers();
  bool symmetric = true;
  std::vector<std::vector<int>> readers(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    const std::vector<int> in = topology.in_neighbors(i);
    REQUIRE(is_proper_list(in, i, n));
    REQUIRE(is_proper_list(topology.out_neighbors(i), i, n));
    REQUIRE(topology.in_degree(i) == static_cast<int>(in.size()));
    for (const int j : in) readers[static_cast<std::size_t>(j)].push_back(i);
    symmetric = symmetric && in == topology.out_neighbors(i);
  }
  for (int j = 0; j < n; ++j) {
    REQUIRE(readers[static_cast<std::size_t>(j)] == topology.out_neighbors(j));
    REQUIRE(topology.out_degree(j) == static_cast<int>(topology.out_neighbors(j).size()));
  }
  REQUIRE(topology.is_symmetric() == symmetric);
}
