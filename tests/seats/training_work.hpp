// One rank of a training run, and what the driver learns from it.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/data/load.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "seats/training_plan.hpp"

namespace seats {

/// Fashion-MNIST, with so many training samples as the plan has, and the whole test part.
fast::data::Splits training_data(const TrainingPlan& plan);

/// Of a batch, from what is in it.
std::uint64_t batch_id(const fast::Batch& batch);

/// The main function of a rank. It adds the id of each batch that was trained on to
/// DIRECTORY/used-RANK, and its end to DIRECTORY/rank-RANK.
int train_rank(int argc, char** argv, const TrainingPlan& plan, const std::string& directory);

/// What a rank that ended with a seat has written.
struct TrainingResult {
  int seat = 0;
  double accuracy = 0;  ///< of the mean model on the test samples
  std::size_t lost = 0;
  std::uint64_t repeated = 0;  ///< samples, as the summary has it
};
std::optional<TrainingResult> result_of(const std::string& directory, int rank);

}  // namespace seats
