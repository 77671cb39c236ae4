// The rows of a training run's options, with those of its worker.
#pragma once

#include <fast/train/trainer.hpp>

#include <optional>
#include <string_view>

#include "options/option_table.hpp"

namespace fast::train {

/// Options that every training program can leave to its users. Options whose meaning is up to the
/// program are rows of the program: batches, the learning rate, what is printed.
void add_rows(options::OptionTable& table, TrainerOptions& trainer);

/// Samples per step and worker, in the table's present group.
void add_batch_size(options::OptionTable& table, std::size_t& samples);
/// `otherwise`: what stands where the rate is not set, as the help tells it.
void add_learning_rate(options::OptionTable& table, std::optional<double>& rate,
                       std::string_view otherwise);
/// Where users say nothing.
LearningRate usual_learning_rate();

}  // namespace fast::train
