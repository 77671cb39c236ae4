// Steps of a run's model before it begins, to see how long they take.
#pragma once

#include <fast/data/load.hpp>
#include <fast/nn/model_spec.hpp>

#include "fast_train/options.hpp"
#include "measure/measured_cluster.hpp"

namespace fast_train {

/// Rounds' steps on a random batch of the run's size, by a replica of its own that is released
/// afterwards: the run's replica begins as without them. --step-ms counts as in the run.
tools::StepTimes trial_steps(const Options& o, const fast::nn::ModelSpec& spec,
                             const fast::data::Dataset& data, const fast::Group& group,
                             fast::Seconds budget);

}  // namespace fast_train
