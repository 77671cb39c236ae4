// Which batches of a training run were used, and how often.
#pragma once

#include <fast/data/load.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "seats/training_plan.hpp"

namespace seats {

/// In batches. Batches are those of all seats, epochs and rounds, as the loaders deal the samples.
struct Coverage {
  std::uint64_t all = 0;
  std::uint64_t missing = 0;  ///< never used
  std::uint64_t again = 0;    ///< uses beyond the first
  std::uint64_t unknown = 0;  ///< uses of what no loader deals
};

/// `used`: ids of batches (see batch_id()), one a use. Of a run that has grown, in the epoch that
/// fits best.
Coverage count_batches(const TrainingPlan& plan, const fast::data::Splits& data,
                       const std::vector<std::uint64_t>& used);

/// What all ranks have written down.
std::vector<std::uint64_t> used_batches(const std::string& directory, const TrainingPlan& plan);

}  // namespace seats
