// The files that a run writes.
#pragma once

#include <fast/train/checkpoint.hpp>
#include <fast/train/metrics.hpp>

#include <memory>
#include <optional>

#include "train/checkpoint/run_places.hpp"
#include "train/run/run_plan.hpp"

namespace fast::train {

struct RunFiles {
  std::optional<MetricsWriter> metrics;
  std::unique_ptr<CheckpointWriter> checkpoints;  ///< null: the run saves none
};

/// Throws Error(argument) when checkpoints are wanted too often, or without a directory.
RunPlaces places_of(const TrainerOptions& options);

/// Collective, after require_free(). One worker of each host makes the directories the run's before
/// any worker writes there.
RunFiles open_files(const RunPlan& plan);

}  // namespace fast::train
