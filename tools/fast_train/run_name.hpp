// The directory of a run that has a name: runs/NAME.
#pragma once

#include <ctime>
#include <fast/exchange/group.hpp>
#include <filesystem>
#include <string>

#include "fast_train/options.hpp"

namespace fast_train {

/// Where runs with a name are.
inline const std::filesystem::path parent_of_runs = "runs";

/// "2026-11-22-180312-lenet-torus2d-4": time, model, topology and workers.
std::string automatic_name(const Options& o, int workers, std::time_t now);

/// Makes the directory `parent`/`name`, or with -2, -3 and so on behind it when there is one
/// already, and returns it. Throws fast::Error (resource) when it cannot be made.
std::filesystem::path make_new_directory(const std::filesystem::path& parent,
                                         const std::string& name);

/// Collective. With --run-name, sets the directory for the run's output: rank 0 chooses it, makes
/// it for the name auto, and prints it. Throws fast::Error on every rank.
void name_run(const fast::Group& ranks, Options& o);

}  // namespace fast_train
