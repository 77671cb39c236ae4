// What fast-train's options mean to the library. All throw fast::Error (argument) for a value that
// is unknown or out of range.
#pragma once

#include <fast/nn/model_spec.hpp>
#include <fast/topology/topology.hpp>
#include <fast/train/trainer.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backends/backends.hpp"
#include "fast_train/options.hpp"

namespace fast_train {

fast::train::TrainerOptions trainer_options(const Options& o);
/// On the device that the options name.
backends::OnDevice backend_of(const Options& o, const fast::data::Dataset& data,
                              const fast::Group& group);
fast::nn::ModelSpec model_for(const Options& o, const fast::data::Dataset& data);
std::size_t prefetch_of(const Options& o);
/// "hierarchical" follows the hosts of the run when there are several.
fast::TopologyRule topology_of(const std::string& name, const std::vector<int>& hosts);

bool is_all_reduce(const Options& o);
/// True for rules that divide by the learning rate.
bool brings_momentum(const Options& o);
/// Of sgd; empty for other optimizers.
std::optional<double> momentum_of(const Options& o);
double learning_rate_of(const Options& o);

}  // namespace fast_train
