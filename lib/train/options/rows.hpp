// The rows of a training run's options, with those of its worker.
#pragma once

#include <fast/train/trainer.hpp>

#include "options/option_table.hpp"

namespace fast::train {

/// Options that every training program can leave to its users. Options whose meaning is up to the
/// program are rows of the program: batches, the learning rate, what is printed.
void add_rows(options::OptionTable& table, TrainerOptions& trainer);

}  // namespace fast::train
