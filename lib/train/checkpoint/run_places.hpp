// The directories that a run writes to: which run they belong to, and what may be removed there.
//
//   OUT/run.json                   the run's number, which is random
//   OUT/metrics-3.jsonl            metrics of worker 3
//   OUT/mean-model.safetensors
//   CHECKPOINTS/run.json           the same number
//   CHECKPOINTS/round-.../...      see <fast/train/checkpoint.hpp>
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace fast::train {

/// Where a run writes, and what it resumes from.
struct RunPlaces {
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> checkpoints;
  std::optional<std::filesystem::path> resume;  ///< a checkpoint, or a directory of them
  bool overwrite = false;
};

inline constexpr const char* mean_model_name = "mean-model.safetensors";

/// Throws Error(argument), with the directory and the resumed run, when a directory holds another
/// run than the resumed one (lines of metrics, a mean model, a checkpoint) and overwriting is not
/// allowed. The run in a directory is the resumed one when the numbers or the directories are the
/// same. Changes nothing.
void require_free(const RunPlaces& places);

/// The resumed run's number if the run continues in that run's directory; otherwise `fresh`.
std::string number_of(const RunPlaces& places, const std::string& fresh);

/// After require_free(): creates the directories and writes the run's number. With `overwrite`
/// removes another run's files of the names above. Removes the resumed run's checkpoints of rounds
/// later than `resumed_round`. Throws Error(resource) when a directory cannot be made or written
/// to.
void claim(const RunPlaces& places, const std::string& number,
           std::optional<std::int64_t> resumed_round);

}  // namespace fast::train
