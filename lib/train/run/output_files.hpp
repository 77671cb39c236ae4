// The files that a run writes.
#pragma once

#include <memory>
#include <vector>

#include "train/checkpoint/checkpoint.hpp"
#include "train/checkpoint/run_directories.hpp"
#include "train/record/log_file.hpp"
#include "train/record/run_metrics.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

struct RunFiles {
  std::shared_ptr<RunMetrics> metrics;            ///< null: nobody asks for them
  std::shared_ptr<LogFile> log;                   ///< null: nobody asks for them
  std::unique_ptr<CheckpointWriter> checkpoints;  ///< null: the run saves none
  std::vector<DirectoryLock> locks;               ///< of the run's directories
};

/// Throws Error(argument) when checkpoints are wanted too often, or without a directory.
RunDirectories directories_of(const TrainerOptions& options);

/// Makes what will write the files. The plan's Worker gets the metrics as an observer, and what it
/// has to say also goes to the log.
RunFiles prepare_files(RunPlan& plan);

/// Collective, after require_free(). One worker of each host makes the directories the run's before
/// any worker writes there. Throws Error(argument) if another run writes to one of them now.
void open_files(const RunPlan& plan, RunFiles& files);
/// Of a spare, while the workers call open_files(). Throws what that throws.
void attend_opening(const RunPlan& plan);
/// Of a spare that has taken a seat: the files of that seat, which are continued.
void continue_files(const RunPlan& plan, RunFiles& files);

/// At the end, after every worker's last line of metrics: the lowest worker that is left merges
/// them. Collective unless workers are lost or replaced. A failure is one warning.
void merge_files(const RunPlan& plan, const Summary& summary);

}  // namespace fast::train
