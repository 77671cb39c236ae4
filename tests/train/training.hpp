// A small training run for the Trainer's tests: a perceptron on made-up classes.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/train/trainer.hpp>
#include <memory>
#include <vector>

namespace fast::testing {

inline constexpr std::size_t train_samples = 960, test_samples = 240;
inline constexpr int classes = 4;

struct Trained {
  train::Summary summary;
  std::vector<double> mean_model;  ///< parameters, as the Trainer leaves them
};

data::Splits made_up_data();

/// Every eighth sample cannot be read, the first among them.
data::Dataset with_damage(const data::Dataset& samples);

/// 3 epochs in batches of 16, no progress.
train::TrainerOptions trainer_options();

std::unique_ptr<Backend> small_backend();
Trained train_small(const Group& group, const TopologyRule& rule,
                    const train::TrainerOptions& options, Backend& backend);
Trained train_small(const Group& group, const TopologyRule& rule,
                    const train::TrainerOptions& options);
/// Four workers as threads; what each of them ends with.
std::vector<Trained> train_four(const train::TrainerOptions& options,
                                const TopologyRule& rule = stencil::torus2d());

}  // namespace fast::testing
