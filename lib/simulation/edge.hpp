// The messages from one source to one reader: one after another, each with the newest publication.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include "simulation/history.hpp"

namespace fast::simulation {

struct Edge {
  int source = 0;
  std::int64_t content = -1;  ///< round of the publication on its way, or arrived last
  std::int64_t arrived = -1;  ///< the one before
  std::int64_t read = -1;     ///< the newest that was read
  double start_s = -std::numeric_limits<double>::infinity();
  double arrival_s = -std::numeric_limits<double>::infinity();

  /// A message has the newest publication at its start, which may be known only later.
  void resolve(const History& published) {
    while (content >= 0 && content < published.newest() &&
           published.at(content + 1, source) <= start_s) {
      ++content;
    }
  }

  /// When the next message can start; infinity if nothing newer has been published.
  double next_start(const History& published, double not_before_s) {
    resolve(published);
    if (content >= published.newest()) return std::numeric_limits<double>::infinity();
    return std::max({arrival_s, published.at(content + 1, source), not_before_s});
  }

  void begin(const History& published, double at_s) {
    arrived = content;
    ++content;
    start_s = at_s;
    resolve(published);
  }
};

}  // namespace fast::simulation
