// The directories that a run writes to: whose they are, and what may be removed there.
//
//   OUT/run.json                   which run it is: a random number
//   OUT/metrics-3.jsonl            each worker's
//   OUT/mean-model.safetensors
//   CHECKPOINTS/run.json           the same number
//   CHECKPOINTS/round-.../...      see <fast/train/checkpoint.hpp>
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace fast::train {

/// Where a run writes, and what it goes on from.
struct RunPlaces {
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> checkpoints;
  std::optional<std::filesystem::path> resume;  ///< a checkpoint, or a directory of them
  bool overwrite = false;
};

inline constexpr const char* mean_model_name = "mean-model.safetensors";

/// Changes nothing. Throws Error(argument), naming the directory and the run that is resumed, when
/// a directory holds a run (lines of metrics, a mean model, a checkpoint, whole or not) that is not
/// the resumed one and shall not be overwritten. A run is the resumed one when their numbers are
/// equal or the places are the same.
void require_free(const RunPlaces& places);

/// The resumed run's number where the run goes on in that one's place; else `fresh`.
std::string number_of(const RunPlaces& places, const std::string& fresh);

/// After require_free(): makes the directories the run's. With `overwrite` removes another run's
/// files, those of the names above and no other; of the resumed run, checkpoints later than
/// `resumed_round`. Throws Error(resource) when a directory cannot be made or written to.
void claim(const RunPlaces& places, const std::string& number,
           std::optional<std::int64_t> resumed_round);

}  // namespace fast::train
