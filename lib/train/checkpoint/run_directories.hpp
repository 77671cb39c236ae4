// The directories that a run writes to: which run they belong to, and what may be removed there.
//
//   OUT/run.json                   the run's number, which is random
//   OUT/metrics/3.jsonl            metrics of worker 3
//   OUT/metrics.jsonl              those of all workers, by time; written at the end
//   OUT/logs/3.log                 what worker 3 has to say
//   OUT/mean-model.safetensors
//   OUT/config.toml                its options; config-2.toml when it was resumed, and so on
//   OUT/traces/, OUT/tensorboard/  what observers have written
//   CHECKPOINTS/run.json           the same number
//   CHECKPOINTS/round-.../...      see checkpoint.hpp
#pragma once

#include <fast/core/deadline.hpp>

#include <filesystem>
#include <optional>
#include <string>

#include "core/descriptor.hpp"
#include "train/checkpoint/checkpoint.hpp"

namespace fast::train {

// Whether other runs write to a directory now.

/// The mark of a worker on a directory to which it writes. The system removes it when the process
/// ends, also if it is killed. On file systems whose marks could outlive a lost host (NFS and
/// others of several hosts), there is none.
class DirectoryLock {
 public:
  /// Makes the directory if it is missing. What fails is for whoever writes there to tell.
  explicit DirectoryLock(std::filesystem::path directory);

  /// Of a run's first worker before the others have marks. Waits for workers of an earlier run that
  /// are about to end. Throws Error(argument) if there are marks of other workers after that.
  void require_alone(Seconds patience = Seconds(5)) const;

 private:
  std::filesystem::path directory_;
  Descriptor descriptor_;  ///< not open: there is no mark
};

/// Where a run writes, and what it resumes from.
struct RunDirectories {
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> checkpoints;
  std::optional<std::filesystem::path> resume;  ///< a checkpoint, or a directory of them
  bool overwrite = false;
};

/// What a run's config.toml begins with.
inline constexpr const char* configuration_mark = "# fast-train ";
inline constexpr const char* mean_model_name = "mean-model.safetensors";
inline constexpr const char* metrics_directory = "metrics";
inline constexpr const char* metrics_end = ".jsonl";
inline constexpr const char* merged_metrics_name = "metrics.jsonl";
inline constexpr const char* logs_directory = "logs";

/// "3.jsonl", in metrics_directory.
inline std::string metrics_name(int worker) { return std::to_string(worker) + metrics_end; }
bool is_metrics_name(const std::string& name);
/// "3.log", in logs_directory.
std::string log_name(int worker);

/// Throws Error(argument), with the directory and the resumed run, when a directory holds another
/// run than the resumed one (metrics of epochs or of all workers, a mean model, a checkpoint) and
/// overwriting is not allowed. The run in a directory is the resumed one when the numbers or the
/// directories are the same. Changes nothing.
void require_free(const RunDirectories& directories);

/// Whether the run saves in the directory with the checkpoint that it is resumed from.
bool resumes_in_place(const RunDirectories& directories);

/// The resumed run's number if the run continues in that run's directory; otherwise `fresh`.
std::string number_of(const RunDirectories& directories, const std::string& fresh);

/// After require_free(): creates the directories and writes the run's number. With `overwrite`
/// removes another run's files of the names above. Removes the resumed run's checkpoints of rounds
/// later than `resumed_round`. Throws Error(resource) when a directory cannot be made or written
/// to.
void claim(const RunDirectories& directories, const std::string& number,
           std::optional<std::int64_t> resumed_round);

}  // namespace fast::train
