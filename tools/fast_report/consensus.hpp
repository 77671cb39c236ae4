// The distance between the replicas, and how fast averaging alone would reduce it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fast_report/curves.hpp"
#include "fast_report/run.hpp"

namespace fast_report {

/// A round of averaging multiplies the consensus distance by at most 1 - gap.
struct Contraction {
  std::optional<double> gap;  ///< in (0, 1]
  std::string why_not;        ///< a sentence, when there is no gap

  /// Rounds of averaging alone after which the distance is a tenth. 0 when one round is exact.
  double rounds_per_tenth() const;
};

/// The gap of the run's mixing matrix: as the run told it (a topology may follow the hosts), else
/// recomputed from its options.
/// There is one only for a static topology with doubly stochastic weights, for the rules that
/// average once a round and for staleness 0.
Contraction contraction(const Run& run);

/// From the largest value at the rate 1 - gap down to the smallest positive value, then level to
/// the last round. Rows {rounds, value}: two or three; none when all values are equal.
nlohmann::json prediction(const std::vector<Point>& means, double gap);

}  // namespace fast_report
