// Settings by name.
#pragma once

#include <fast/data/load.hpp>
#include <fast/train/trainer.hpp>

#include "c/handles.hpp"

namespace fast::c {

/// Throws Error(argument) on a name that is none of a worker's, or a value that is no good.
WorkerOptions worker_options(const fast_options* options);

struct TrainSettings {
  train::TrainerOptions trainer;
  data::LoadOptions load;
};
TrainSettings train_settings(const fast_options* options);

}  // namespace fast::c
