// What a combination reads: the worker's own message and those of its neighbors.
#pragma once

#include <fast/exchange/exchange.hpp>

#include <vector>

namespace fast::combine {

/// The round's neighbors that are present, and their weights.
struct Neighborhood {
  Payload own;
  std::vector<int> workers;
  std::vector<Payload> payloads;
  std::vector<double> weights;
  double self_weight = 1;
  /// Of neighbors whose running sums were torn. They take their shares of this worker's sums all
  /// the same, so these leave it.
  double owed_weight = 0;
};

}  // namespace fast::combine
